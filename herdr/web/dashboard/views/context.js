// What the gateway knows of the projects: their index, map and symbols, what was said, and what tools left for others.
import { html, useEffect, useState } from "../kit.js";
import { Ago, Badge, Empty, ErrorNote, Field, Num, Panel, Tabs, Text, seen } from "../parts.js";
import { api, useFetch } from "../store.js";
import { Artifacts } from "./artifacts.js";
import { Sessions } from "./sessions.js";
import { Symbols } from "./symbols.js";
import { inShell, linkTo, open, pathOf, retype } from "./place.js";

const VIEW = "context";
const TABS = [["map", "Map"], ["symbols", "Symbols"], ["sessions", "Sessions"], ["artifacts", "Artifacts"]];
const TOKENS = ["512", "1024", "2048", "4096", "8192"];
const STATES = { ready: "ok", indexing: "warn", failed: "bad", missing: "bad" };

// Watched folders first; then the names that only sessions have
function namesOf(watched, sessions) {
  const names = (watched?.workspaces ?? []).map((workspace) => workspace.name);
  return [...new Set([...names, ...(sessions?.sessions ?? []).map((session) => session.workspace)])];
}

function Workspaces({ names, watched, current, params }) {
  const byName = new Map(watched.map((workspace) => [workspace.name, workspace]));
  return html`<nav class="choices" aria-label="workspaces">${names.map((name) => {
    const folder = byName.get(name);
    return html`<a key=${name} href=${linkTo(VIEW, params, { workspace: name, symbol: null, session: null, artifact: null })}
      aria-current=${name === current ? "true" : undefined}>
      <b><${Text}>${name}<//></b>
      <span class="dim">${folder ? html`${folder.status}, <${Num} n=${folder.files} /> ${folder.files === 1 ? "file" : "files"}` : "no folder is watched"}</span>
    </a>`;
  })}</nav>`;
}

function Index({ workspace }) {
  const { data, error, reload } = useFetch(`/v1/context/${pathOf(workspace)}`, { on: ["context.", "index."], every: 5 });
  const [refusal, setRefusal] = useState(null);
  const again = async () => {
    await api(`/v1/context/${pathOf(workspace)}/index`, { method: "POST", body: {} }).then(() => setRefusal(null), setRefusal);
    reload();
  };
  if (!data) return error ? html`<${Panel} title="Index"><${ErrorNote} error=${error} /><//>` : null;
  const { graph, head } = data;
  const facts = [["files", graph.files], ["read", graph.parsed], ["symbols", graph.symbols], ["calls", graph.calls], ["imports", graph.imports]];
  const skipped = Object.entries(graph.skipped ?? {});
  return html`<${Panel} title="Index" actions=${html`<button onClick=${again} title="look at all files again">Index again</button>`}>
    <p class="line"><${Badge} kind=${STATES[graph.state] ?? "neutral"}>${graph.state}<//>
      ${graph.detail ? html`<${Text}>${graph.detail}<//>` : null}
      ${graph.progress ? html`<span class="dim">${graph.progress.done ?? 0} of ${graph.progress.total ?? "?"} files</span>` : null}
      ${head?.branch ? html`<span class="dim">branch <${Text}>${head.branch}<//>${head.commit ? html` at <code>${head.commit.slice(0, 10)}</code>` : null}</span>` : null}
      ${graph.verified ? html`<span class="dim">verified <${Ago} time=${graph.verified} /></span>` : null}</p>
    <dl class="counts">${facts.filter(([, n]) => n !== undefined && n !== null).map(([title, n]) => html`<div key=${title}><dt>${title}</dt><dd><${Num} n=${n} /></dd></div>`)}
      ${Object.entries(graph.languages ?? {}).map(([name, of]) => html`<div key=${name}><dt>${name}</dt><dd><${Num} n=${of.files} /> files</dd></div>`)}</dl>
    ${skipped.length ? html`<p class="dim">Not read: ${skipped.map(([why, n]) => `${n} ${why}`).join(", ")}.</p>` : null}
    <${ErrorNote} error=${refusal} />
  <//>`;
}

function Outline({ workspace, params }) {
  const tokens = TOKENS.includes(params.get("tokens")) ? params.get("tokens") : "2048";
  const focus = params.get("focus") ?? "";
  const query = new URLSearchParams({ tokens, ...(focus ? { focus } : {}) });
  const { data, error } = useFetch(`/v1/context/${pathOf(workspace)}/graph/map?${query}`, { on: ["context."] });
  const actions = html`<span class="dim">${data ? html`<b class="num">${data.tokens.toLocaleString("en")}</b> tokens, ${data.files} of ${data.of_files} files` : ""}</span>`;
  return html`<${Panel} title="Map" actions=${actions}>
    <div class="filters">
      <label class="field narrow"><span>At most, in tokens</span><select value=${tokens} onChange=${(event) => open(VIEW, params, { tokens: event.target.value })}>
        ${TOKENS.map((n) => html`<option key=${n} value=${n}>${n}</option>`)}</select></label>
      <${Field} label="Around the file" value=${focus} placeholder="src/cart.py" onInput=${(text) => retype(VIEW, params, { focus: text })} />
    </div>
    <${ErrorNote} error=${error} />
    ${data ? (data.text ? html`<pre class="listing" tabindex="0">${seen(data.text)}</pre>
      <p class="dim foot">counted by ${seen(data.tokenizer)}, content <code>${data.ref.slice(0, 12)}</code></p>`
      : html`<${Empty} title="The map is empty: no file of a known language was read." command=${`herdr index ${inShell(workspace)}`} />`) : null}
  <//>`;
}

const Unwatched = ({ workspace }) => html`<${Panel} title="Index">
  <${Empty} title="No folder is watched by this name, so there is no map of it." command=${`herdr workspace add . --name ${inShell(workspace)}`} />
<//>`;

function Shown({ tab, workspace, isWatched, params }) {
  if (tab === "symbols" && isWatched) return html`<${Symbols} key=${workspace} workspace=${workspace} params=${params} />`;
  if (tab === "sessions") return html`<${Sessions} key=${workspace} workspace=${workspace} params=${params} />`;
  if (tab === "artifacts") return html`<${Artifacts} key=${workspace} workspace=${workspace} params=${params} />`;
  if (!isWatched) return html`<${Unwatched} workspace=${workspace} />`;
  return html`<${Index} key=${workspace} workspace=${workspace} /><${Outline} key=${`map ${workspace}`} workspace=${workspace} params=${params} />`;
}

export default function Context({ params }) {
  const watched = useFetch("/v1/workspaces", { on: ["herdr."], every: 10 });
  const sessions = useFetch("/v1/sessions?limit=1000", { every: 10 });
  const names = namesOf(watched.data, sessions.data);
  const isRead = watched.data ?? watched.error;
  const ofSession = sessions.data?.sessions.find((row) => row.session === params.get("session"))?.workspace;
  const folders = watched.data?.workspaces ?? [];
  const current = params.get("workspace") ?? ofSession ?? names[0];
  // Who may not list the folders may still read what is known of them
  const isWatched = Boolean(watched.error) || folders.some((folder) => folder.name === current);
  const tab = TABS.some(([key]) => key === params.get("tab")) ? params.get("tab") : isWatched ? "map" : "sessions";
  useEffect(() => {
    document.querySelector('.choices [aria-current="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  if (!isRead) return html`<main data-view="context" aria-busy="true"></main>`;
  if (!current) {
    return html`<main data-view="context"><h1 hidden>Context</h1><${ErrorNote} error=${watched.error} />
      <${Panel} title="Context"><${Empty} title="No folder is watched and nothing was said yet." command="herdr workspace add . --name shop" /><//></main>`;
  }
  return html`<main data-view="context">
    <h1 hidden>Context</h1>
    <${ErrorNote} error=${watched.error} />
    <${Workspaces} names=${names} watched=${folders} current=${current} params=${params} />
    <${Tabs} tabs=${TABS} value=${tab} onChange=${(next) => open(VIEW, params, { tab: next, workspace: current })} />
    <${Shown} tab=${tab} workspace=${current} isWatched=${isWatched} params=${params} />
  </main>`;
}
