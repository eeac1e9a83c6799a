// The tail of the log: filtered, paused, one event as a tree, and everything that came of one cause as a timeline.
import { html, useEffect, useMemo, useState } from "../kit.js";
import { Ago, Badge, Bytes, Empty, ErrorNote, Field, Panel, Table, Text, Tree } from "../parts.js";
import { api, setHash, useLive } from "../store.js";

const SHOWN = 200; // rows: more than fit on any screen, and few enough to draw at once
const CHAIN_MAX = 200;

function globbed(pattern) {
  const literal = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${pattern.includes("*") || pattern.includes("?") ? literal : `.*${literal}.*`}$`, "i");
}

function fitting(events, params) {
  const tests = ["type", "source", "workspace", "subject", "session"]
    .filter((name) => params.get(name))
    .map((name) => [name, globbed(params.get(name))]);
  const text = params.get("text")?.toLowerCase();
  return events.filter(
    (event) =>
      tests.every(([name, test]) => test.test(event[name] ?? "")) &&
      (!text || JSON.stringify(event).toLowerCase().includes(text)),
  );
}

const COLUMNS = [
  { key: "seq", title: "seq", num: true },
  { key: "accepted", title: "time", render: (event) => html`<span class="num" title=${event.accepted}>${event.accepted?.slice(11, 23)}</span>` },
  { key: "priority", title: "lane", render: (event) => html`<${Badge} kind=${(event.priority ?? "").toLowerCase()}>${event.priority ?? "?"}<//>` },
  { key: "type", title: "type", render: (event) => html`<b><${Text}>${event.type}<//></b>` },
  { key: "source", title: "source" },
  { key: "subject", title: "about", render: (event) => html`<${Text}>${event.subject ?? event.session ?? ""}<//>` },
];

function useWhole(event) {
  const [state, set] = useState({ seq: null, whole: null, error: null });
  useEffect(() => {
    if (!event?.ref) return;
    api(event.ref).then(
      (whole) => set({ seq: event.seq, whole, error: null }),
      (error) => set({ seq: event.seq, whole: null, error }),
    );
  }, [event?.seq]);
  const isIt = state.seq === event?.seq;
  return { whole: isIt && state.whole ? state.whole : event, error: isIt ? state.error : null };
}

// What has the same cause: the trace where there is one, else the task, else the session; and what it was based on
function causeOf(event) {
  for (const name of ["trace", "task", "session"]) if (event[name]) return [name, event[name]];
  return null;
}

const idOf = (name, value) => (name === "trace" ? value.split("-")[1] : value);

function useChain(event, events) {
  const cause = event && causeOf(event);
  const [older, set] = useState({ of: null, events: [] });
  const key = cause?.join();
  useEffect(() => {
    if (!event?.session) return;
    const after = Math.max(0, event.seq - 5000);
    api(`/v1/events?session=${encodeURIComponent(event.session)}&after=${after}&limit=${CHAIN_MAX}`).then(
      (page) => set({ of: key, events: page.events }),
      () => {},
    );
  }, [key]);
  return useMemo(() => {
    if (!event) return [];
    const all = new Map([...(older.of === key ? older.events : []), ...events].map((e) => [e.seq, e]));
    const isOf = (e) => cause && e[cause[0]] && idOf(cause[0], e[cause[0]]) === idOf(...cause);
    const found = [...all.values()].filter((e) => isOf(e) || e.seq === event.based_on || e.based_on === event.seq || e.seq === event.seq);
    return found.sort((a, b) => a.seq - b.seq).slice(-CHAIN_MAX);
  }, [event?.seq, key, older, events]);
}

function Chain({ event, events, onOpen }) {
  const chain = useChain(event, events);
  const cause = causeOf(event);
  if (chain.length < 2) return null;
  const first = Date.parse(chain[0].accepted);
  return html`<h3>The same ${cause ? cause[0] : "subject"}, step by step</h3>
    <ol class="steps">${chain.map((step) => html`<li key=${step.seq} class=${step.seq === event.seq ? "" : "past"}>
      <button class="quiet" onClick=${() => onOpen(step)}><b><${Text}>${step.type}<//></b></button>
      <span class="dim"> by <${Text}>${step.source}<//>, +${((Date.parse(step.accepted) - first) / 1000).toFixed(1)} s</span>
      ${step.subject ? html`<div><${Text}>${step.subject}<//></div>` : null}
    </li>`)}</ol>`;
}

function Details({ event, events, onOpen, onClose }) {
  const { whole, error } = useWhole(event);
  const { data, data_bytes: size, ref, ...envelope } = whole;
  return html`<${Panel} title=${`Event ${event.seq}`} actions=${html`<button class="quiet" onClick=${onClose}>close</button>`}>
    <${ErrorNote} error=${error} />
    <dl class="facts">${Object.entries(envelope).filter(([, value]) => value !== null && value?.length !== 0).map(([name, value]) => html`<dt key=${name}>${name}</dt>
      <dd class="mono"><${Text}>${typeof value === "object" ? JSON.stringify(value) : value}<//></dd>`)}</dl>
    ${data === undefined ? html`<p class="dim">payload of <${Bytes} n=${size} /></p>` : html`<${Tree} name="data" value=${data} />`}
    <${Chain} event=${event} events=${events} onOpen=${onOpen} />
  <//>`;
}

export default function Live({ params }) {
  const live = useLive();
  const [frozen, freeze] = useState(null);
  const [open, setOpen] = useState(null);
  const events = frozen ?? live.events;
  const shown = fitting(events, params).slice(-SHOWN).reverse();
  const filter = (name) => ({ value: params.get(name) ?? "", onInput: (value) => setHash("live", { ...Object.fromEntries(params), [name]: value }) });
  const isFiltered = [...params.values()].some(Boolean);
  const pause = html`<button aria-pressed=${frozen !== null} onClick=${() => freeze(frozen ? null : live.events)}>${frozen ? `go on (${live.events.at(-1)?.seq - (frozen.at(-1)?.seq ?? 0) || 0} new)` : "pause"}</button>`;
  const empty = isFiltered
    ? html`<${Empty} title="None of the newest events fits the filter." />`
    : html`<${Empty} title="Nothing has been published yet." command="herdr publish tool.result --source me" />`;
  return html`<main data-view="live">
    <h1 hidden>Live</h1>
    <${Panel} title="Filter" actions=${html`${live.skipped ? html`<span class="dim" title="in a storm only a part is shown; the log has all">${live.skipped.toLocaleString("en")} not shown</span>` : null}${pause}`}>
      <div class="fields">
        <${Field} label="type" placeholder="test.*" ...${filter("type")} />
        <${Field} label="source" ...${filter("source")} />
        <${Field} label="workspace" ...${filter("workspace")} />
        <${Field} label="subject" placeholder="src/*" ...${filter("subject")} />
        <${Field} label="anything" ...${filter("text")} />
      </div>
    <//>
    <div class=${open ? "split" : ""}>
      <${Panel} title="Events" class="events" actions=${shown.length ? html`<span class="dim">newest first, <${Ago} time=${shown[0].accepted} /></span>` : null}>
        <${Table} columns=${COLUMNS} rows=${shown} empty=${empty} onRow=${setOpen} selected=${open?.seq} rowKey=${(event) => event.seq} label="events" />
      <//>
      ${open ? html`<${Details} event=${open} events=${events} onOpen=${setOpen} onClose=${() => setOpen(null)} />` : null}
    </div>
  </main>`;
}
