// One task: what it is, who has it, what is asked, and each step with what went along.
import { html, useState } from "../kit.js";
import { Ago, Badge, ErrorNote, Left, Panel, Text, seen } from "../parts.js";
import { hashOf, useFetch } from "../store.js";
import { Answer, Cancel } from "./task_forms.js";
import { pathOf } from "./place.js";

export const STATES = {
  submitted: ["neutral", "to do"], working: ["p1", "in work"], input_required: ["warn", "asks"], completed: ["ok", "completed"],
  failed: ["bad", "failed"], rejected: ["bad", "rejected"], canceled: ["neutral", "canceled"],
};
export const FINAL = ["completed", "failed", "rejected", "canceled"];

// What each step did, in words behind the name of who did it
const DID = {
  created: (step) => html`created it for <b>${seen(step.role)}</b>`,
  claimed: () => "took it up",
  renewed: () => "went on",
  handed_over: (step) => html`handed it over to <b>${seen(step.role)}</b>`,
  asked: (step) => (step.to ? html`asked <b>${seen(step.to)}</b>` : "asked"),
  answered: () => "answered",
  released: (step) => html`gave it back to <b>${seen(step.role)}</b>`,
  returned: (step) => html`lost it: back to <b>${seen(step.role)}</b>`,
  finished: () => "finished it",
  failed: () => "could not do it",
  rejected: () => "rejected it",
  canceled: () => "canceled it",
};

const DOTS = { finished: "went-well", failed: "went-wrong", rejected: "went-wrong", canceled: "past", returned: "went-wrong", asked: "asks" };

const Items = ({ title, items, render }) => (items?.length
  ? html`<dt>${title}</dt><dd><ul>${items.map((item, place) => html`<li key=${place}>${render ? render(item) : html`<${Text}>${item}<//>`}</li>`)}</ul></dd>` : null);

function Note({ note, workspace }) {
  const file = (path) => html`<code><${Text}>${path}<//></code>`;
  const artifact = (name) => html`<a class="mono" href=${hashOf("context", { workspace, tab: "artifacts", artifact: name })}><${Text}>${name}<//></a>`;
  return html`<dl class="told">
    ${note.summary ? html`<dt>learnt</dt><dd><${Text}>${note.summary}<//></dd>` : null}
    <${Items} title="decided" items=${note.decisions} />
    <${Items} title="files" items=${note.files} render=${file} />
    <${Items} title="artifacts" items=${note.artifacts} render=${artifact} />
    <${Items} title="open" items=${note.open_questions} />
  </dl>`;
}

function Step({ step, workspace }) {
  const verb = step.type.replace("handoff.", "");
  return html`<li class=${DOTS[verb] ?? ""}>
    <p class="line"><b><${Text}>${step.by}<//></b><span>${DID[verb]?.(step) ?? seen(verb)}</span><span class="dim"><${Ago} time=${step.time} /> · #${step.seq}</span></p>
    ${[step.question, step.answer, step.reason].filter(Boolean).map((text, place) => html`<blockquote key=${place}><${Text}>${text}<//></blockquote>`)}
    ${step.note ? html`<${Note} note=${step.note} workspace=${workspace} />` : null}
  </li>`;
}

function Facts({ task }) {
  const facts = [
    ["role", html`<${Badge} kind="accent">${seen(task.role)}<//>`],
    ["held by", task.holder ? html`<${Text}>${task.holder}<//>${task.expires ? html`, <${Left} time=${task.expires} /> left` : null}` : null],
    ["created by", html`<${Text}>${task.created_by}<//>, <${Ago} time=${task.created} />`],
    ["workspace", html`<${Text}>${task.workspace}<//>`],
    ["session", task.session ? html`<a href=${hashOf("context", { tab: "sessions", session: task.session })}><${Text}>${task.session}<//></a>` : null],
    ["id", html`<code><${Text}>${task.task}<//></code>`],
  ];
  return html`<dl class="facts">${facts.filter(([, value]) => value).map(([title, value]) => html`<dt key=${title}>${title}</dt><dd key=${`${title} value`}>${value}</dd>`)}</dl>`;
}

export function Task({ id, onClose, onChange }) {
  const { data: task, error, reload } = useFetch(`/v1/tasks/${pathOf(id)}`, { on: ["handoff."], every: 15 });
  const [cancels, setCancels] = useState(false);
  const close = html`<button class="quiet" onClick=${onClose}>close</button>`;
  if (!task) return html`<${Panel} title="Task" actions=${close}><${ErrorNote} error=${error} /><//>`;
  const [kind, word] = STATES[task.state] ?? ["neutral", task.state];
  const done = (isDone) => {
    setCancels(false);
    if (isDone) [reload, onChange].forEach((read) => read());
  };
  return html`<${Panel} title=${seen(task.title)} class="task" actions=${html`<${Badge} kind=${kind}>${word}<//>
      ${FINAL.includes(task.state) ? null : html`<button onClick=${() => setCancels(true)}>Cancel task…</button>`}${close}`}>
    <div class="pair">
      <div>
        <${Facts} task=${task} />
        ${task.description ? html`<p class="words"><${Text}>${task.description}<//></p>` : null}
        ${task.question ? html`<${Answer} task=${task} onDone=${done} />` : null}
      </div>
      <ol class="steps">${task.steps.map((step) => html`<${Step} key=${step.seq} step=${step} workspace=${task.workspace} />`)}</ol>
    </div>
    ${cancels ? html`<${Cancel} task=${task} onDone=${done} />` : null}
  <//>`;
}
