// What a person does with tasks: create, answer, cancel. Where no tokens are used, one says by which name.
import { html, useState } from "../kit.js";
import { Confirm, ErrorNote, Field, Panel, Text, seen } from "../parts.js";
import { api, useFetch } from "../store.js";
import { pathOf } from "./place.js";

const ROLES = ["architect", "coder", "reviewer", "tester"];
const NAME = "herdr-name"; // what the person was called last time in this browser

// The name to act by: a token's own, else what is typed
function useName() {
  const { data: me } = useFetch("/v1/me");
  const [name, set] = useState(localStorage.getItem(NAME) ?? "operator");
  const isOpen = me?.open ?? true;
  const keep = (text) => {
    set(text);
    localStorage.setItem(NAME, text);
  };
  const field = isOpen ? html`<${Field} label="Your name" value=${name} onInput=${keep} required maxlength=${128} />` : null;
  return { owner: isOpen ? { owner: name.trim() } : {}, field };
}

// Does it, tells what was wrong, and lets nobody do it twice
function useDoing(what, onDone) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const act = async (event) => {
    event?.preventDefault();
    setBusy(true);
    try {
      onDone(await what());
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return { error, busy, act };
}

const post = (path, body) => api(path, { method: "POST", body });

const Area = ({ label, value, onInput, ...more }) => html`<label class="field"><span>${label}</span>
  <textarea value=${value} rows="4" onInput=${(event) => onInput(event.target.value)} ...${more}></textarea></label>`;

export function Create({ onDone, onCancel, workspace, role }) {
  const { owner, field } = useName();
  const [draft, set] = useState({ title: "", role: role || "coder", workspace: workspace || "default", description: "" });
  const write = (name) => (text) => set((before) => ({ ...before, [name]: text }));
  const { error, busy, act } = useDoing(() => post("/v1/tasks", { ...draft, ...owner }), onDone);
  return html`<${Panel} title="New task">
    <form class="form" onSubmit=${act}>
      <${Field} label="Title" value=${draft.title} onInput=${write("title")} placeholder="Sum the cart once" required autofocus maxlength=${256} />
      <div class="fields">
        <${Field} label="Role" value=${draft.role} onInput=${write("role")} required maxlength=${128} list="roles" />
        <datalist id="roles">${ROLES.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
        <${Field} label="Workspace" value=${draft.workspace} onInput=${write("workspace")} required maxlength=${128} />
        ${field}
      </div>
      <${Area} label="Description" value=${draft.description} onInput=${write("description")} maxlength=${16384} />
      <${ErrorNote} error=${error} />
      <div class="actions"><button class="primary" disabled=${busy}>Create</button><button type="button" onClick=${onCancel}>Cancel</button></div>
    </form>
  <//>`;
}

export function Answer({ task, onDone }) {
  const { owner, field } = useName();
  const [answer, set] = useState("");
  const { error, busy, act } = useDoing(() => post(`/v1/tasks/${pathOf(task.task)}/answer`, { answer, ...owner }), onDone);
  return html`<form class="form answer" onSubmit=${act} aria-label="answer">
    <p class="ask"><span class="dim">${seen(task.holder ?? "its holder")} asks${task.asked ? ` ${seen(task.asked)}` : ""}:</span><br /><${Text}>${task.question}<//></p>
    <${Area} label="Answer" value=${answer} onInput=${set} required maxlength=${16384} />
    <div class="fields">${field}<button class="primary" disabled=${busy}>Answer</button></div>
    <${ErrorNote} error=${error} />
  </form>`;
}

export function Cancel({ task, onDone }) {
  const { owner, field } = useName();
  const [reason, setReason] = useState("");
  const body = () => ({ ...owner, ...(reason.trim() ? { reason: reason.trim() } : {}) });
  const { error, act } = useDoing(() => post(`/v1/tasks/${pathOf(task.task)}/cancel`, body()), () => onDone(true));
  return html`<${Confirm} title="Cancel this task?" action="Cancel the task" onYes=${() => act()} onNo=${() => onDone(false)}
    text="Whoever has it is told, and may not go on. This cannot be taken back.">
    <p><b><${Text}>${task.title}<//></b></p>
    <${Field} label="Reason" value=${reason} onInput=${setReason} maxlength=${1024} />
    ${field}
    <${ErrorNote} error=${error} />
  <//>`;
}
