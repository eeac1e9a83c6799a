// What tools left for each other: seen as text, taken along, removed.
import { html, useEffect, useState } from "../kit.js";
import { Ago, Badge, Bytes, Confirm, Empty, ErrorNote, Left, Panel, Table, Text, bytes, seen } from "../parts.js";
import { api, hashOf, useFetch } from "../store.js";
import { open, pathOf } from "./place.js";

const VIEW = "context";
const SHOWN_MAX = 256 * 1024; // characters: a longer text is read faster in an editor
const READ_MAX = 4 * 1024 * 1024; // bytes that are fetched to be looked at

const addressOf = (artifact) => `/v1/artifacts/${pathOf(artifact.name)}?workspace=${encodeURIComponent(artifact.workspace)}`;

const COLUMNS = [
  { key: "name", title: "name", render: (row) => html`<b><${Text}>${row.name}<//></b>` },
  { key: "kind", title: "kind", render: (row) => (row.kind ? html`<${Badge}>${seen(row.kind)}<//>` : "–") },
  { key: "bytes", title: "size", num: true, render: (row) => html`<${Bytes} n=${row.bytes} />` },
  { key: "by", title: "by" },
  { key: "created", title: "stored", render: (row) => html`<${Ago} time=${row.created} />` },
  { key: "expires", title: "kept for", render: (row) => html`<${Left} time=${row.expires} />` },
];

function decoded(buffer) {
  const data = new Uint8Array(buffer);
  if (data.subarray(0, 8192).includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return null;
  }
}

function useContent(artifact) {
  const [state, set] = useState({ ref: null, text: null, error: null });
  useEffect(() => {
    if (artifact.bytes > READ_MAX) return;
    let gone = false;
    api(addressOf(artifact), { raw: true })
      .then((answer) => answer.arrayBuffer())
      .then((buffer) => gone || set({ ref: artifact.ref, text: decoded(buffer), error: null }))
      .catch((error) => gone || set({ ref: artifact.ref, text: null, error }));
    return () => (gone = true);
  }, [artifact.ref, artifact.name]);
  return state.ref === artifact.ref ? state : null;
}

function Content({ artifact }) {
  const content = useContent(artifact);
  if (artifact.bytes > READ_MAX) return html`<p class="dim">It is too large to be shown here (${bytes(artifact.bytes)}). Download it.</p>`;
  if (!content) return html`<p class="dim">reading…</p>`;
  if (content.error) return html`<${ErrorNote} error=${content.error} />`;
  if (content.text === null) return html`<p class="dim">It is not a text. Download it.</p>`;
  const shown = content.text.slice(0, SHOWN_MAX);
  return html`<pre class="listing tall" tabindex="0">${seen(shown)}</pre>
    ${shown.length < content.text.length ? html`<p class="dim foot">The rest of ${bytes(artifact.bytes)} is in the download.</p>` : null}`;
}

function One({ artifact, onDelete }) {
  const facts = [
    ["type", html`<code><${Text}>${artifact.content_type}<//></code>`],
    ["size", html`<${Bytes} n=${artifact.bytes} />`],
    ["by", html`<${Text}>${artifact.by}<//>`],
    ["session", artifact.session ? html`<a href=${hashOf(VIEW, { workspace: artifact.workspace, tab: "sessions", session: artifact.session })}><${Text}>${artifact.session}<//></a>` : null],
    ["based on", artifact.based_on ? html`<code><${Text}>${artifact.based_on}<//></code>` : null],
    ["content", html`<code title=${artifact.ref}>${artifact.ref.slice(0, 16)}…</code>`],
    ["redacted", artifact.redacted ? html`${artifact.redacted} secrets` : null],
  ];
  return html`<${Panel} title=${seen(artifact.name)} actions=${html`<a class="button" href=${addressOf(artifact)} download=${artifact.name.split("/").at(-1)}>Download</a>
      <button onClick=${onDelete}>Delete…</button>`}>
    <dl class="facts">${facts.filter(([, value]) => value).map(([title, value]) => html`<dt key=${title}>${title}</dt><dd key=${`${title} value`}>${value}</dd>`)}</dl>
    <${Content} artifact=${artifact} />
  <//>`;
}

function Delete({ artifact, onDone }) {
  const [error, setError] = useState(null);
  const remove = async () => {
    try {
      await api(addressOf(artifact), { method: "DELETE" });
      onDone(true);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${Confirm} title="Delete this artifact?" action="Delete" onYes=${remove} onNo=${() => onDone(false)}>
    <p><b><${Text}>${artifact.name}<//></b> (${bytes(artifact.bytes)}, by <${Text}>${artifact.by}<//>) is gone then, for everybody.</p>
    <${ErrorNote} error=${error} />
  <//>`;
}

export function Artifacts({ workspace, params }) {
  const { data, error, reload } = useFetch(`/v1/artifacts?workspace=${encodeURIComponent(workspace)}&limit=500`, { on: ["artifact.", "context."], every: 5 });
  const [doomed, setDoomed] = useState(null);
  if (!data) return html`<${ErrorNote} error=${error} />`;
  const chosen = data.artifacts.find((artifact) => artifact.name === params.get("artifact"));
  const done = (isGone) => {
    setDoomed(null);
    if (isGone) {
      open(VIEW, params, { artifact: null });
      reload();
    }
  };
  const none = html`<${Empty} title="No tool has left anything in this workspace. Store the first artifact:" command="herdr artifacts put fix.patch fix.patch --kind patch" />`;
  const lost = params.get("artifact") && !chosen ? html`<p class="note warn">There is no artifact of this name any more.</p>` : null;
  return html`<div class=${chosen ? "pair even" : "stack"}>
    <${Panel} title="Artifacts" actions=${html`<span class="dim">${bytes(data.bytes)} of ${bytes(data.limit_bytes)} in use</span>`}>${lost}
      <${Table} label="artifacts" columns=${chosen ? COLUMNS.slice(0, 3) : COLUMNS} rows=${data.artifacts} rowKey=${(row) => row.name} selected=${params.get("artifact")}
        onRow=${(row) => open(VIEW, params, { artifact: row.name })} empty=${none} /><//>
    ${chosen ? html`<${One} key=${chosen.ref} artifact=${chosen} onDelete=${() => setDoomed(chosen)} />` : null}
    ${doomed ? html`<${Delete} artifact=${doomed} onDone=${done} />` : null}
  </div>`;
}
