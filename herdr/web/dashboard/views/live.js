// The tail of the log: filtered, paused, searched further back; one event beside it.
import { html, useCallback, useEffect, useMemo, useState } from "../kit.js";
import { Ago, Badge, Empty, ErrorNote, Field, Panel, Table, Tabs, Text, seen } from "../parts.js";
import { readLog, useLive } from "../store.js";
import { EventPanel } from "./event.js";
import { asQuery, fitting, isFiltered } from "./match.js";
import { open, retype } from "./place.js";

const VIEW = "live";
const SHOWN = 200; // rows: more than fit on any screen, and few enough to draw at once
const FURTHER = 20000; // events that a search goes back
const PAGES = 80; // of the log, at most 1,000 events or 256 KiB each
const LANES = [["", "all lanes"], ["P0", "P0"], ["P1", "P1"], ["P2", "P2"]];
const LINKED = ["session", "task", "trace"]; // filters that only links set

const COLUMNS = [
  { key: "seq", title: "seq", num: true },
  { key: "accepted", title: "time", render: (event) => html`<span class="num" title=${event.accepted}>${event.accepted?.slice(11, 23)}</span>` },
  { key: "priority", title: "lane", render: (event) => html`<${Badge} kind=${(event.priority ?? "").toLowerCase()}>${event.priority ?? "?"}<//>` },
  { key: "type", title: "type", render: (event) => html`<b><${Text}>${event.type}<//></b>` },
  { key: "source", title: "source" },
  { key: "about", title: "about", render: (event) => html`<${Text}>${event.subject ?? event.task ?? event.session ?? ""}<//>` },
];

// What fits in the part of the log that the tail no longer has
function useSearch(params, head) {
  const key = JSON.stringify(Object.entries(Object.fromEntries(params)).filter(([name]) => name !== "event"));
  const [state, set] = useState({ key: null, events: [], error: null });
  const search = useCallback(() => {
    set({ key, events: [], error: null, isBusy: true });
    readLog(asQuery(params), { after: Math.max(0, head - FURTHER), pages: PAGES }).then(
      (events) => set({ key, events: fitting(events, params).slice(-SHOWN), error: null, isDone: true }),
      (error) => set({ key, events: [], error }),
    );
  }, [key, head]);
  return [state.key === key ? state : { events: [], error: null }, search];
}

// The tail goes on beneath; what is shown stays as it was
function usePause(events) {
  const [frozen, freeze] = useState(null);
  const toggle = useCallback(() => freeze((before) => (before ? null : events)), [events]);
  useEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest?.("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey;
      if (event.key === "p" && !typing) toggle();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [toggle]);
  const missed = frozen ? (events.at(-1)?.seq ?? 0) - (frozen.at(-1)?.seq ?? 0) : 0;
  return { events: frozen ?? events, missed, isPaused: frozen !== null, toggle };
}

function merged(older, events) {
  if (!older.length) return events;
  const known = new Set(events.map((event) => event.seq));
  return [...older.filter((event) => !known.has(event.seq)), ...events].sort((a, b) => a.seq - b.seq);
}

function Filter({ params, pause, skipped }) {
  const filter = (name) => ({ value: params.get(name) ?? "", onInput: (value) => retype(VIEW, params, { [name]: value }) });
  return html`<${Panel} title="Filter" actions=${html`
    ${skipped ? html`<span class="dim" title="in a storm only a part is shown; the log has all">${skipped.toLocaleString("en")} not shown</span>` : null}
    <button aria-pressed=${pause.isPaused} title="p" onClick=${pause.toggle}>${pause.isPaused ? `go on (${pause.missed} new)` : "pause"}</button>`}>
    <div class="fields">
      <${Field} label="type" placeholder="test.*" ...${filter("type")} />
      <${Field} label="source" placeholder="claude-code" ...${filter("source")} />
      <${Field} label="workspace" ...${filter("workspace")} />
      <${Field} label="subject" placeholder="src/**" ...${filter("subject")} />
      <${Field} label="anything" placeholder="in the payload too" ...${filter("text")} />
    </div>
    <div class="chips"><${Tabs} tabs=${LANES} value=${params.get("priority") ?? ""} onChange=${(lane) => retype(VIEW, params, { priority: lane })} />
      ${LINKED.filter((name) => params.get(name)).map((name) => html`<button key=${name} class="chip" title="remove this filter"
        onClick=${() => retype(VIEW, params, { [name]: "" })}>${name} ${seen(params.get(name))} ✕</button>`)}</div>
  <//>`;
}

export default function Live({ params }) {
  const live = useLive();
  const pause = usePause(live.events);
  const [older, search] = useSearch(params, live.head);
  const events = pause.events;
  const shown = useMemo(() => merged(older.events, fitting(events, params)).slice(-SHOWN).reverse(), [events, older.events, params]);
  const seq = Number(params.get("event")) || null;
  const show = (event) => open(VIEW, params, { event: event?.seq ?? event });
  const close = useCallback(() => open(VIEW, params, { event: null }), [params]);
  const further = html`<button onClick=${search} disabled=${older.isBusy}>${older.isBusy ? "searching…" : `search the last ${FURTHER.toLocaleString("en")} of the log`}</button>`;
  const canSearch = isFiltered(params) && live.head > events.length && !older.isDone;
  const empty = isFiltered(params)
    ? html`<${Empty} title=${older.isDone ? "Nothing in that part of the log fits the filter." : "None of the newest events fits the filter."}>${canSearch ? further : null}<//>`
    : html`<${Empty} title="Nothing has been published yet." command="herdr publish tool.result --source me" />`;
  return html`<main data-view="live">
    <h1 hidden>Live</h1>
    <${Filter} params=${params} pause=${pause} skipped=${live.skipped} />
    <div class=${seq ? "split" : ""}>
      <${Panel} title="Events" class="events" actions=${shown.length ? html`<span class="dim">newest first, <${Ago} time=${shown[0].accepted} /></span>${canSearch ? further : null}` : null}>
        <${ErrorNote} error=${older.error} />
        <${Table} columns=${COLUMNS} rows=${shown} empty=${empty} onRow=${show} selected=${seq} rowKey=${(event) => event.seq} label="events" />
      <//>
      ${seq ? html`<${EventPanel} seq=${seq} known=${[...older.events, ...live.events, ...events].find((event) => event.seq === seq)} events=${live.events} onOpen=${show} onClose=${close} />` : null}
    </div>
  </main>`;
}
