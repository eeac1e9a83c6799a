// Everything that came of one cause, step by step, with the event that is open in the middle.
import { html, useEffect, useMemo, useState } from "../kit.js";
import { ErrorNote, Tabs, Text, span } from "../parts.js";
import { api, hashOf, readLog } from "../store.js";

const BEHIND = 1500; // events before the one that is open, among which its cause's are looked for
const PAGES = 4; // of the log: as many as those, and what came after them
const BACK = 20; // steps from one event to what it was based on
const AROUND = 12; // steps shown before and after; more at a click

const idOf = (name, value) => (name === "trace" ? (value.split("-")[1] ?? value) : value);

// The narrowest first: a trace is one request, a task some of them, a session what one tool did all day
export const causesOf = (event) => ["trace", "task", "session"].filter((name) => event[name]);

export function chainOf(event, events, cause, roots) {
  const all = new Map([...events, ...roots, event].map((one) => [one.seq, one]));
  const basis = new Set([...roots.map((one) => one.seq), event.based_on]);
  const why = (one) => {
    if (one.seq === event.seq) return "this one";
    if (basis.has(one.seq)) return "what it was based on";
    if (one.based_on === event.seq) return "based on it";
    return cause && one[cause] && idOf(cause, one[cause]) === idOf(cause, event[cause]) ? `same ${cause}` : null;
  };
  return [...all.values()].map((one) => ({ event: one, why: why(one) })).filter((step) => step.why).sort((a, b) => a.event.seq - b.event.seq);
}

async function basisOf(event) {
  const roots = [];
  for (let seq = event.based_on; seq && roots.length < BACK; seq = roots.at(-1).based_on) {
    const root = await api(`/v1/events/${seq}`).catch((error) => (error.status === 404 ? null : Promise.reject(error))); // trimmed
    if (!root) break;
    roots.push(root);
  }
  return roots;
}

function useOlder(event, cause) {
  const key = `${event.seq} ${cause}`;
  const [state, set] = useState({ key: null, events: [], roots: [], error: null });
  useEffect(() => {
    let gone = false;
    const filter = cause === "session" ? { session: event.session } : {};
    const around = cause ? readLog(filter, { after: Math.max(0, event.seq - BEHIND), pages: PAGES }) : [];
    Promise.all([around, basisOf(event)]).then(
      ([events, roots]) => gone || set({ key, events, roots, error: null }),
      (error) => gone || set({ key, events: [], roots: [], error }),
    );
    return () => (gone = true);
  }, [key]);
  return state.key === key ? state : { events: [], roots: [], error: null, isLoading: true };
}

function Step({ step, from, isHere, onOpen }) {
  const { event, why } = step;
  const after = (Date.parse(event.accepted) - from) / 1000;
  return html`<li class=${isHere ? "" : "past"} aria-current=${isHere ? "step" : undefined}>
    <button class="link" onClick=${() => onOpen(event.seq)}><b><${Text}>${event.type}<//></b> <span class="num dim">${event.seq}</span></button>
    <div class="dim"><${Text}>${event.source}<//>, ${after < 60 ? `+${after.toFixed(1)} s` : `+${span(after)}`}, ${why}</div>
    ${event.subject ? html`<div><${Text}>${event.subject}<//></div>` : null}
  </li>`;
}

export function Chain({ event, events, onOpen }) {
  const causes = causesOf(event);
  const [wanted, want] = useState(null);
  const [more, setMore] = useState(0);
  const cause = causes.includes(wanted) ? wanted : causes[0];
  const older = useOlder(event, cause);
  const steps = useMemo(() => chainOf(event, [...older.events, ...events], cause, older.roots), [event.seq, cause, older.events, events]);
  if (!cause && !event.based_on && steps.length < 2) return null;
  const here = steps.findIndex((step) => step.event.seq === event.seq);
  const [begin, end] = [Math.max(0, here - AROUND - more), here + AROUND + more + 1];
  const hidden = begin + Math.max(0, steps.length - end);
  const from = Date.parse(steps[begin].event.accepted);
  return html`<section class="chain" aria-label="the chain of its cause">
    <header><h3>Step by step</h3>${causes.length > 1 ? html`<${Tabs} tabs=${causes.map((name) => [name, name])} value=${cause} onChange=${want} />` : null}
      ${cause ? html`<a href=${hashOf("live", { [cause]: idOf(cause, event[cause]) })}>only this ${cause}</a>` : null}</header>
    <${ErrorNote} error=${older.error} />
    ${steps.length < 2 && !older.isLoading ? html`<p class="dim">Nothing else near it has the same ${cause ?? "basis"}.</p>` : null}
    <ol class="steps" aria-busy=${older.isLoading}>${steps.slice(begin, end).map((step) => html`<${Step} key=${step.event.seq} step=${step} from=${from}
      isHere=${step.event.seq === event.seq} onOpen=${onOpen} />`)}</ol>
    ${hidden ? html`<button class="quiet" onClick=${() => setMore(more + 50)}>${hidden} more before and after</button>` : null}
  </section>`;
}
