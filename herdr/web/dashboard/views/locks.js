// Who may write what, who stands in line for it, and who waits for whom.
import { html, useState } from "../kit.js";
import { Ago, Badge, Confirm, Empty, ErrorNote, Field, Left, Panel, Table, Text, seen } from "../parts.js";
import { api, hashOf, useFetch, useLive } from "../store.js";
import { WaitPicture } from "./wait_picture.js";
import { arrowsOf } from "./wait_graph.js";
import { linkTo, open, retype } from "./place.js";

const VIEW = "locks";
const PATHS_SHOWN = 4;
const RINGS_SHOWN = 5; // the newest; Live has the others

const Paths = ({ paths }) => html`<ul class="paths">
  ${paths.slice(0, PATHS_SHOWN).map((path) => html`<li key=${path}><code><${Text}>${path}<//></code></li>`)}
  ${paths.length > PATHS_SHOWN ? html`<li class="dim" title=${paths.map(seen).join("\n")}>and ${paths.length - PATHS_SHOWN} more</li>` : null}
</ul>`;

const Who = ({ name, params }) => html`<a href=${linkTo(VIEW, params, { owner: name })}><${Text}>${name}<//></a>`;

function Names({ names, params }) {
  if (!names.length) return html`<span class="dim">nobody</span>`;
  return html`<span class="names">${names.map((name) => html`<${Who} key=${name} name=${name} params=${params} />`)}</span>`;
}

const purpose = (row) => (row.purpose ? html`<${Text}>${row.purpose}<//>` : html`<span class="dim">not said</span>`);

const lockColumns = (params, onForce) => [
  { key: "paths", title: "locked", render: (lock) => html`<${Paths} paths=${lock.paths} />${lock.mode === "intent" ? html`<${Badge}>intent<//>` : null}` },
  { key: "owner", title: "by", render: (lock) => html`<${Who} name=${lock.owner} params=${params} />` },
  { key: "purpose", title: "for", render: purpose },
  { key: "workspace", title: "workspace" },
  { key: "since", title: "since", render: (lock) => html`<${Ago} time=${lock.since} />` },
  { key: "expires", title: "time left", render: (lock) => html`<${Left} time=${lock.expires} />` },
  { key: "waiters", title: "in line", render: (lock) => html`<${Names} names=${lock.waiters} params=${params} />` },
  { key: "force", title: "", render: (lock) => html`<button class="force" onClick=${() => onForce(lock)}
    aria-label=${`release ${seen(lock.paths[0])} of ${seen(lock.owner)} by force`}>Release…</button>` },
];

const waitingColumns = (params) => [
  { key: "owner", title: "who", render: (row) => html`<${Who} name=${row.owner} params=${params} />` },
  { key: "paths", title: "wants", render: (row) => html`<${Paths} paths=${row.paths} />` },
  { key: "purpose", title: "for", render: purpose },
  { key: "blockers", title: "waits for", render: (row) => html`<${Names} names=${row.blockers} params=${params} />` },
  { key: "since", title: "since", render: (row) => html`<${Ago} time=${row.since} />` },
];

const declaredColumns = (params) => [
  { key: "owner", title: "who", render: (row) => html`<${Who} name=${row.owner} params=${params} />` },
  { key: "on", title: "waits for", render: (row) => html`<${Who} name=${row.on} params=${params} />` },
  { key: "purpose", title: "for", render: purpose },
  { key: "expires", title: "given up in", render: (row) => html`<${Left} time=${row.expires} />` },
];

function Force({ lock, onDone }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState(null);
  const release = async () => {
    if (!reason.trim()) return setError(new Error("Say why: the holder is told, and it stays in the log."));
    try {
      await api(`/v1/locks/${encodeURIComponent(lock.lock)}?force=true&reason=${encodeURIComponent(reason.trim())}`, { method: "DELETE" });
      onDone(true);
    } catch (problem) {
      setError(problem);
    }
  };
  const heir = lock.waiters.length ? ` ${seen(lock.waiters[0])} is next in line.` : "";
  return html`<${Confirm} title="Release this lock by force?" action="Release by force" onYes=${release} onNo=${() => onDone(false)}
    text=${`${seen(lock.owner)} may be writing right now, and is not stopped: its next change is reported as made without a lock.${heir}`}>
    <${Paths} paths=${lock.paths} />
    <${Field} label="Reason, which the holder is told" value=${reason} onInput=${setReason} placeholder="it crashed, and others wait" maxlength=${1024}
      onKeyDown=${(event) => event.key === "Enter" && release()} />
    <${ErrorNote} error=${error} />
  <//>`;
}

// What the filters leave: by workspace, and what concerns one name in whatever part
function fitting(data, workspace, owner, text) {
  const says = (row) => !text || JSON.stringify(row).toLowerCase().includes(text.toLowerCase());
  const isIn = (row) => !workspace || row.workspace === workspace;
  const names = (row) => [row.owner, row.on, ...(row.waiters ?? []), ...(row.blockers ?? [])];
  const concerns = (row) => !owner || names(row).includes(owner);
  const fits = (row) => isIn(row) && concerns(row) && says(row);
  return {
    locks: data.locks.filter(fits),
    waiting: data.waiting.filter(fits),
    waits: data.waits.filter((row) => concerns(row) && says(row)),
  };
}

// Rings never stand: the wait that would close one is refused, and its event says which it was
function Rings({ params }) {
  const owner = params.get("owner");
  const fits = ({ type, workspace, data }) => type === "lock.deadlock" && data?.cycle && (!owner || data.cycle.includes(owner))
    && (!params.get("workspace") || workspace === params.get("workspace"));
  const rings = useLive().events.filter(fits).slice(-RINGS_SHOWN).reverse();
  if (!rings.length) return null;
  return html`<${Panel} title="Refused rings" actions=${html`<span class="dim">of late</span>`}>
    <ul class="rings">${rings.map((event) => html`<li key=${event.seq}>
      <span class="names">${event.data.cycle.map((name, place) => html`${place ? html`<span class="bad" aria-label="waits for">→</span>` : null}<${Who} name=${name} params=${params} />`)}</span>
      <span class="dim"><${Ago} time=${event.accepted} />, <a href=${hashOf("live", { event: event.seq })}>#${event.seq}</a></span></li>`)}</ul>
  <//>`;
}

function Filters({ data, params }) {
  const workspaces = [...new Set([...data.locks, ...data.waiting].map((row) => row.workspace))].sort();
  const owner = params.get("owner");
  return html`<div class="filters">
    <${Field} label="Find" type="search" value=${params.get("q") ?? ""} placeholder="path, name or purpose" onInput=${(q) => retype(VIEW, params, { q })} />
    <label class="field"><span>Workspace</span>
      <select value=${params.get("workspace") ?? ""} onChange=${(event) => open(VIEW, params, { workspace: event.target.value })}>
        <option value="">all</option>${workspaces.map((name) => html`<option key=${name} value=${name}>${seen(name)}</option>`)}
      </select></label>
    ${owner ? html`<button class="chip" onClick=${() => open(VIEW, params, { owner: null })} aria-label="show everybody">only <b><${Text}>${owner}<//></b> ✕</button>` : null}
  </div>`;
}

function Shown({ data, shown, params, onForce }) {
  const arrows = arrowsOf(shown);
  const isEmpty = !data.locks.length && !data.waiting.length && !data.waits.length;
  const none = isEmpty
    ? html`<${Empty} title="Nothing is locked. A tool that is about to write takes a lock:" command="herdr lock run src/cart.py -- python fix_cart.py" />`
    : html`<${Empty} title="No lock fits the filter." />`;
  return html`
    ${arrows.length ? html`<${Panel} title="Who waits for whom"><${WaitPicture} arrows=${arrows} locks=${data.locks} params=${params} /><//>` : null}
    <${Rings} params=${params} />
    <${Panel} title="Locks" actions=${html`<span class="dim">${shown.locks.length} held</span>`}>
      <${Table} label="locks" columns=${lockColumns(params, onForce)} rows=${shown.locks} rowKey=${(lock) => lock.lock} empty=${none} /><//>
    ${shown.waiting.length ? html`<${Panel} title="In line"><${Table} label="in line" columns=${waitingColumns(params)} rows=${shown.waiting}
      rowKey=${(row) => JSON.stringify([row.owner, row.workspace, row.paths])} /><//>` : null}
    ${shown.waits.length ? html`<${Panel} title="Declared waits" actions=${html`<span class="dim">for another’s result, not for a lock</span>`}>
      <${Table} label="declared waits" columns=${declaredColumns(params)} rows=${shown.waits} rowKey=${(row) => row.wait} /><//>` : null}`;
}

export default function Locks({ params }) {
  // In line, names come and go without an event of their own
  const { data, error, reload } = useFetch("/v1/locks", { on: ["lock.", "conflict."], every: 3 });
  const [forced, setForced] = useState(null);
  const done = (isReleased) => {
    setForced(null);
    if (isReleased) reload();
  };
  const shown = data && fitting(data, params.get("workspace"), params.get("owner"), params.get("q"));
  return html`<main data-view="locks">
    <h1 hidden>Locks</h1>
    <${ErrorNote} error=${error} />
    ${data ? html`<${Filters} data=${data} params=${params} /><${Shown} data=${data} shown=${shown} params=${params} onForce=${setForced} />` : null}
    ${forced ? html`<${Force} lock=${forced} onDone=${done} />` : null}
  </main>`;
}
