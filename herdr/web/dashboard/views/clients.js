// Who takes part: who publishes, who is routed to, and how far behind each is.
import { html } from "../kit.js";
import { Ago, Badge, Empty, ErrorNote, Field, Num, Panel, Table, Tabs, Text, seen } from "../parts.js";
import { hashOf, useFetch } from "../store.js";
import { open, retype } from "./place.js";

const VIEW = "clients";
const LATE = 1000; // events behind, from which on a target is marked
const QUIET_S = 300;
const KINDS = [["publisher", "Publishers"], ["target", "Targets"], ["hooks", "Hooks"], ["mcp", "MCP"], ["websocket", "WebSockets"]];
const RULES_SHOWN = 3;

function Behind({ row }) {
  if (!row.kinds.includes("target")) return html`<span class="dim">–</span>`;
  if (row.behind === null) return html`<span class="dim" title="it has acknowledged nothing yet">not known</span>`;
  if (row.behind === 0) return html`<${Badge} kind="ok">up to date<//>`;
  return html`<${Badge} kind=${row.behind >= LATE ? "warn" : "neutral"}><${Num} n=${row.behind} /> events<//>`;
}

// What is addressed to a target: the events of the rules that name it
function Gets({ row }) {
  if (!row.rules.length) return html`<span class="dim">–</span>`;
  const more = row.rules.length - RULES_SHOWN;
  return html`<span class="names">${row.rules.slice(0, RULES_SHOWN).map((rule) => html`<a key=${rule.name} href=${hashOf("routes")} title=${`rule ${seen(rule.name)}`}>
    <code><${Text}>${rule.event}<//></code></a>`)}${more > 0 ? html`<span class="dim">and ${more} more</span>` : null}</span>`;
}

// Each name with the rules that send it something. A target that nobody has read as yet is known by its rules only
function withRules(clients, routes) {
  const byTarget = new Map();
  for (const rule of routes) byTarget.set(rule.target, [...(byTarget.get(rule.target) ?? []), rule]);
  const known = new Set(clients.map((row) => row.name));
  const unread = [...byTarget.keys()].filter((name) => !known.has(name)).map((name) => ({ name, kinds: ["target"], events: 0, behind: null }));
  return [...clients, ...unread].map((row) => {
    const rules = byTarget.get(row.name) ?? [];
    return { ...row, rules, kinds: rules.length && !row.kinds.includes("target") ? [...row.kinds, "target"] : row.kinds };
  });
}

const isHere = (row) => row.last_seen && Date.now() - Date.parse(row.last_seen) < QUIET_S * 1000;

const COLUMNS = [
  { key: "name", title: "name", render: (row) => html`<span class="who"><span class=${`dot ${isHere(row) ? "ok" : ""}`} title=${isHere(row) ? "seen in the last five minutes" : "quiet"}></span><b><${Text}>${row.name}<//></b></span>` },
  { key: "kinds", title: "as", render: (row) => html`<span class="names">${row.kinds.map((kind) => html`<${Badge} key=${kind}>${kind}<//>`)}</span>` },
  { key: "last_seen", title: "last seen", render: (row) => html`<${Ago} time=${row.last_seen} />` },
  { key: "first_seen", title: "first seen", render: (row) => (row.first_seen ? html`<${Ago} time=${row.first_seen} />` : html`<span class="dim">–</span>`) },
  { key: "events", title: "events", num: true, render: (row) => html`<${Num} n=${row.events} />` },
  { key: "behind", title: "behind", render: (row) => html`<${Behind} row=${row} />` },
  { key: "rules", title: "is sent", render: (row) => html`<${Gets} row=${row} />` },
  { key: "workspace", title: "workspace", render: (row) => (row.workspace ? html`<${Text}>${row.workspace}<//>` : html`<span class="dim">–</span>`) },
  { key: "session", title: "session", render: (row) => (row.session
    ? html`<a href=${hashOf("context", { tab: "sessions", session: row.session })}><${Text}>${row.session}<//></a>` : html`<span class="dim">–</span>`) },
  { key: "tail", title: "", render: (row) => (row.events ? html`<a href=${hashOf("live", { source: row.name })}>events</a>` : null) },
];

export default function Clients({ params }) {
  const { data, error } = useFetch("/v1/clients", { every: 2 });
  // Whoever may not read the rules sees the rest
  const { data: table } = useFetch("/v1/routes", { on: ["herdr."], every: 10 });
  const kind = params.get("kind") ?? "";
  const q = (params.get("q") ?? "").toLowerCase();
  const fits = (row) => (!kind || row.kinds.includes(kind)) && (!q || [row.name, row.workspace, row.session, ...row.rules.map((rule) => rule.event)].join(" ").toLowerCase().includes(q));
  const clients = data ? withRules(data.clients, table?.routes ?? []) : [];
  const rows = clients.filter(fits);
  const tabs = KINDS.filter(([name]) => name === kind || clients.some((row) => row.kinds.includes(name)));
  const none = clients.length
    ? html`<${Empty} title="Nobody fits the filter." />`
    : html`<${Empty} title="Nobody has published since the gateway was started, and no rule names a target. Join a tool in:" command="herdr connect claude-code" />`;
  return html`<main data-view="clients">
    <h1 hidden>Clients</h1>
    <${ErrorNote} error=${error} />
    <div class="filters">
      <${Field} label="Find" type="search" value=${params.get("q") ?? ""} placeholder="name, workspace or session" onInput=${(text) => retype(VIEW, params, { q: text })} />
      <${Tabs} tabs=${[["", "All"], ...tabs]} value=${kind} onChange=${(next) => open(VIEW, params, { kind: next })} />
    </div>
    ${data ? html`<${Panel} title="Clients" actions=${html`<span class="dim">${rows.length} of ${clients.length}, since the gateway was started</span>`}>
      <${Table} label="clients" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.name} empty=${none} /><//>` : null}
  </main>`;
}
