// What views read: the API, and one live stream a browser that all of its tabs share.
import { useCallback, useEffect, useReducer, useRef, useState } from "./kit.js";

const EVENTS_KEPT = 500;
const SAMPLES_KEPT = 300;
const QUIET_MS = 300; // after an event, before what it changed is read again: events come in bursts
const RETRY_MS = [1000, 2000, 5000, 10000];
const CHANNEL = "herdr-live";

export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    Object.assign(this, { status, code, detail });
  }
}

export async function api(path, { method = "GET", body, raw = false } = {}) {
  const init = { method, headers: { accept: "application/json" } };
  if (body !== undefined) {
    init.body = typeof body === "string" ? body : JSON.stringify(body);
    init.headers["content-type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Problem(0, "unreachable", "The gateway does not answer; it is tried again.");
  }
  if (answer.ok && raw) return answer;
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem(answer.status, "not_json", "Something else than the gateway has answered.");
  }
  if (answer.ok) return value;
  const problem = new Problem(answer.status, value?.code ?? "error", value?.detail ?? `The gateway answered ${answer.status}.`);
  if (answer.status === 401) signedOutHandler(problem);
  throw problem;
}

// Events of the log in order: page after page, at most so many, since a filter that seldom fits reads on and on
export async function readLog(filter, { after, pages }) {
  const found = [];
  let cursor = String(after);
  for (let read = 0; read < pages; read++) {
    const page = await api(`/v1/events?${new URLSearchParams({ ...filter, after: cursor, limit: 1000 })}`);
    found.push(...page.events);
    if (page.cursor === cursor) break;
    cursor = page.cursor;
  }
  return found.sort((a, b) => a.seq - b.seq); // near the head, the lanes come one after another
}

// The live stream -------------------------------------------------------------------------------------------------

const live = { connected: false, samples: [], events: [], skipped: 0, epoch: "", head: 0, version: "", isNewer: false, leader: false };
const listeners = new Set();
const arrivals = new Set();
let frame = 0;
let channel = null;
let source = null;
let failures = 0;
let isStarted = false;
let signedOutHandler = () => {};

export const onSignedOut = (handler) => (signedOutHandler = handler);

function changed() {
  // One drawing for all that comes within a frame; tabs in the background draw once a second
  if (frame) return;
  const draw = () => {
    frame = 0;
    for (const listener of listeners) listener();
  };
  frame = document.hidden ? setTimeout(draw, 1000) : requestAnimationFrame(draw);
}

// A gateway that was started again knows nothing of before; one that was not tells much of it twice
export function joined(known, told) {
  const begin = told[0]?.t;
  const earlier = begin ? known.filter((sample) => sample.t < begin) : known;
  return [...earlier, ...told].slice(-SAMPLES_KEPT);
}

// What was redacted in the log is shown no more here either, whenever it came
function withoutRedacted(events) {
  const gone = new Set(events.filter(({ type }) => type === "herdr.redacted").map(({ data }) => data?.seq));
  if (!gone.size) return events;
  return events.map((event) => (gone.has(event.seq) ? { ...event, subject: undefined, data: { redacted: true } } : event));
}

function take(kind, data) {
  if (kind === "hello") {
    const isOther = live.epoch && live.epoch !== data.epoch;
    const events = isOther ? [] : live.events;
    const known = new Set(events.map((event) => event.seq));
    const first = data.recent[0]?.seq ?? 0;
    const last = events.at(-1)?.seq ?? first;
    live.skipped += Math.max(0, first - last - 1); // what came while there was no stream, and is not told again
    live.events = withoutRedacted([...events, ...data.recent.filter((event) => !known.has(event.seq))].slice(-EVENTS_KEPT));
    live.samples = joined(live.samples, data.samples);
    const isNewer = live.isNewer || Boolean(live.version && live.version !== data.version);
    Object.assign(live, { connected: true, epoch: data.epoch, head: data.head, version: data.version, isNewer });
    for (const arrival of arrivals) arrival(null);
  } else if (kind === "sample") {
    live.samples = [...live.samples, data].slice(-SAMPLES_KEPT);
    live.head = data.head;
  } else if (kind === "events") {
    live.events = withoutRedacted([...live.events, ...data.events].slice(-EVENTS_KEPT));
    live.skipped += data.skipped;
    const types = data.events.map((event) => event.type);
    for (const arrival of arrivals) arrival(data.skipped ? null : types);
  } else if (kind === "connection") {
    live.connected = data.connected;
  }
  changed();
}

function tell(kind, data) {
  take(kind, data);
  channel?.postMessage({ kind, data });
}

function lead() {
  live.leader = true;
  source = new EventSource("/v1/live");
  for (const kind of ["hello", "sample", "events"]) {
    source.addEventListener(kind, (event) => {
      failures = 0;
      tell(kind, JSON.parse(event.data));
    });
  }
  source.onerror = () => {
    tell("connection", { connected: false });
    if (source.readyState !== EventSource.CLOSED) return; // it comes back by itself
    source = null;
    api("/v1/me").catch(() => {}); // the session may be over: then this says so
    setTimeout(lead, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  };
}

export function startLive() {
  if (isStarted) return;
  isStarted = true;
  if (!("locks" in navigator) || !("BroadcastChannel" in window)) {
    lead(); // not a secure context: a stream for each tab
    return;
  }
  channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data: { kind, data } }) => {
    if (kind !== "ask") take(kind, data);
    else if (live.leader && live.connected) {
      const { epoch, head, version, samples, events } = live;
      channel.postMessage({ kind: "hello", data: { epoch, head, version, samples, recent: events } });
    }
  };
  channel.postMessage({ kind: "ask" });
  // The lock is held until the tab closes; then the next tab in line gets it, and leads
  navigator.locks.request(CHANNEL, () => {
    lead();
    return new Promise(() => {});
  });
}

export function useLive() {
  const [, draw] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    listeners.add(draw);
    return () => listeners.delete(draw);
  }, []);
  return live;
}

// What is read once, and again when events say that it has changed -----------------------------------------------

export function useFetch(path, { on = [], every = 0 } = {}) {
  const [state, set] = useState({ data: null, error: null, path: null });
  const current = useRef(path);
  current.current = path;
  const reload = useCallback(async () => {
    const asked = current.current;
    if (!asked) return;
    try {
      const data = await api(asked);
      if (asked === current.current) set({ data, error: null, path: asked });
    } catch (error) {
      if (asked === current.current) set((before) => ({ ...before, error }));
    }
  }, []);
  useEffect(() => {
    set((before) => (before.path === path ? before : { data: null, error: null, path }));
    reload();
    let timer = 0;
    const arrival = (types) => {
      const concerns = types === null ? on.length : types.some((type) => on.some((start) => type.startsWith(start)));
      if (!concerns || timer) return;
      timer = setTimeout(() => {
        timer = 0;
        reload();
      }, QUIET_MS);
    };
    arrivals.add(arrival);
    const beat = every ? setInterval(() => document.hidden || reload(), every * 1000) : 0;
    return () => {
      arrivals.delete(arrival);
      clearTimeout(timer);
      clearInterval(beat);
    };
  }, [path, on.join(), every]);
  return { data: state.path === path ? state.data : null, error: state.error, reload };
}

// Where we are: #/view?name=value ---------------------------------------------------------------------------------

export function here() {
  const [view, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: view || "overview", params: new URLSearchParams(query) };
}

export function hashOf(view, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export function setHash(view, params = {}, { replace = true } = {}) {
  const next = hashOf(view, params);
  if (next === location.hash) return;
  if (replace) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}
