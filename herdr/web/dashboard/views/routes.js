// Who gets what, and a box that tries an event against the table without publishing it.
import { html, useEffect, useState } from "../kit.js";
import { Badge, Empty, ErrorNote, Panel, Table, Text } from "../parts.js";
import { api, useFetch } from "../store.js";

const EXAMPLE = { type: "test.failed", source: "ci", workspace: "default", subject: "tests/test_cart.py", data: { level: "error" } };
const SAID = ["type", "source", "subject", "workspace", "session", "task", "tags", "based_on", "data"];
const ORIGINS = { api: "(set by hand)", file: "(from the file)" };

const conditions = (rule) => Object.entries(rule.match ?? {}).map(([name, wanted]) => `${name} = ${JSON.stringify(wanted)}`).join(", ");

const COLUMNS = [
  { key: "event", title: "event", render: (rule) => html`<code><${Text}>${rule.event}<//></code>` },
  { key: "target", title: "goes to", render: (rule) => html`<b><${Text}>${rule.target}<//></b>` },
  { key: "match", title: "if", render: (rule) => html`<${Text}>${conditions(rule) || "always"}<//>` },
  { key: "priority", title: "lane", render: (rule) => (rule.priority ? html`<${Badge} kind=${rule.priority.toLowerCase()}>${rule.priority}<//>` : html`<span class="dim">the event's own</span>`) },
  { key: "format", title: "as", render: (rule) => html`<span>${rule.format ?? "full"}${rule.context && rule.context !== "none" ? " with context" : ""}</span>` },
  { key: "timeout_ms", title: "within", num: true, render: (rule) => (rule.timeout_ms ? `${rule.timeout_ms / 1000} s` : html`<span class="dim">the lane's</span>`) },
  { key: "name", title: "rule", render: (rule) => html`<span><${Text}>${rule.name}<//> <span class="dim">${ORIGINS[rule.origin] ?? rule.origin}</span></span>` },
];

function Answer({ tried }) {
  const rows = [...tried.rules].sort((a, b) => b.fits - a.fits);
  return html`<p role="status">
    It would be <${Badge} kind=${tried.priority.toLowerCase()}>${tried.priority}<//> of class ${tried.class}
    ${tried.tags.length ? ` with the tags ${tried.tags.join(", ")}` : ""}, and go to
    ${tried.deliveries.length ? html` <b><${Text}>${tried.deliveries.map((d) => d.target).join(", ")}<//></b>.` : " nobody but those who follow without a name."}
  </p>
  <${Table} label="rules tried" rowKey=${(rule) => rule.name} rows=${rows} empty=${html`<p class="dim">There is no rule.</p>`} columns=${[
    { key: "name", title: "rule" },
    { key: "fits", title: "fits", render: (rule) => html`<${Badge} kind=${rule.fits ? "ok" : "neutral"}>${rule.fits ? "yes" : "no"}<//>` },
    { key: "why", title: "why", render: (rule) => html`<${Text}>${rule.why === "fits" ? "everything that it asks for" : rule.why}<//>` },
  ]} />`;
}

// What a publisher may say; the rest of a stored event is the gateway's own
const draftOf = (event) => Object.fromEntries(SAID.filter((name) => event[name] !== undefined && event[name]?.length !== 0).map((name) => [name, event[name]]));

function Try({ seq }) {
  const [text, setText] = useState(JSON.stringify(EXAMPLE, null, 2));
  const [tried, set] = useState({ answer: null, error: null });
  const { data: stored, error } = useFetch(seq ? `/v1/events/${seq}` : null);
  useEffect(() => {
    if (!stored) return;
    const draft = JSON.stringify(draftOf(stored), null, 2);
    setText(draft);
    ask(draft);
  }, [stored]);
  const ask = (text) => {
    try {
      JSON.parse(text);
    } catch (error) {
      set({ answer: null, error: { detail: `This is not JSON: ${error.message}` } });
      return;
    }
    api("/v1/routes/try", { method: "POST", body: text }).then(
      (answer) => set({ answer, error: null }),
      (error) => set({ answer: null, error }),
    );
  };
  return html`<${Panel} title="Try an event" actions=${html`<span class="dim">nothing is published</span>`}>
    <form class="form" onSubmit=${(event) => [event.preventDefault(), ask(text)]}>
      <textarea aria-label="event" spellcheck=${false} rows="9" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      <div class="actions"><button class="primary">Try it</button></div>
    </form>
    <${ErrorNote} error=${tried.error ?? error} />
    ${tried.answer ? html`<${Answer} tried=${tried.answer} />` : null}
  <//>`;
}

export default function Routes({ params }) {
  const { data, error } = useFetch("/v1/routes", { on: ["herdr.routes"], every: 10 });
  const empty = html`<${Empty} title="No rule yet: events reach those who follow, and no named target." command="herdr routes set failures --event 'test.*' --target ide" />`;
  return html`<main data-view="routes">
    <h1 hidden>Routes</h1>
    <${Panel} title="Who gets what"><${ErrorNote} error=${error} />
      ${data ? html`<${Table} label="rules" columns=${COLUMNS} rows=${data.routes} empty=${empty} rowKey=${(rule) => rule.name} />` : null}
    <//>
    <${Try} seq=${params.get("event")} />
  </main>`;
}
