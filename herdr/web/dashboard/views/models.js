// The model servers: their slots and whose they are, who waits, and what the calls of late cost.
import { Chart } from "../chart.js";
import { html, useMemo } from "../kit.js";
import { Badge, Empty, ErrorNote, Field, Num, Panel, Text, seen } from "../parts.js";
import { useFetch } from "../store.js";
import { Calls } from "./calls.js";
import { open, retype } from "./place.js";

const VIEW = "models";
const CALLS = 300; // the newest, of which charts and table are made
const SMOOTH = 20; // calls that a mean is over
const STATES = { ready: "ok", starting: "warn", unreachable: "bad" };

function Slot({ slot, context }) {
  const isFree = slot.state === "free";
  const idle = slot.state === "busy" || slot.idle_s === null ? "" : `, idle for ${Math.round(slot.idle_s)} s`;
  return html`<li class=${`slot ${slot.state}`} title=${`slot ${slot.slot}: ${slot.state}${idle}`}>
    <span class="line"><span class="dim num">${slot.slot}</span><${Badge} kind=${slot.state === "busy" ? "warn" : isFree ? "neutral" : "ok"}>${slot.state}<//></span>
    <b class="cut">${isFree ? html`<span class="dim">nobody’s</span>` : html`<${Text}>${slot.agent}<//>`}</b>
    <span class="dim cut">${slot.route ? seen(slot.route) : "\u00a0"}</span>
    <progress max=${context || 1} value=${slot.cached_tokens ?? 0} aria-label=${`cached tokens of slot ${slot.slot}`}></progress>
    <span class="dim num">${(slot.cached_tokens ?? 0).toLocaleString("en")} cached</span>
  </li>`;
}

function Queue({ queue }) {
  const waiting = Object.entries(queue.by_priority).sort(([a], [b]) => b - a);
  if (!queue.total) return html`<span class="dim">nobody waits</span>`;
  return html`<span class="names"><${Badge} kind="warn">${queue.total} waiting<//>
    ${waiting.map(([priority, n]) => html`<span key=${priority} class="dim">priority ${priority}: <b class="num">${n}</b></span>`)}</span>`;
}

function Shares({ shares, total }) {
  const rows = Object.entries(shares);
  if (!rows.length) return null;
  return html`<ul class="shares">${rows.map(([route, share]) => html`<li key=${route}>
    <span class="cut"><${Text}>${route}<//></span>
    <meter min="0" max=${Math.max(total, share.held, 1)} value=${share.running} title=${`${share.running} running`}></meter>
    <span class="dim num">${share.running} running, ${share.held} held, ${share.part} its own</span>
  </li>`)}</ul>`;
}

function Backend({ backend, names }) {
  const called = Object.entries(names).filter(([, to]) => to === backend.name || to?.backend === backend.name).map(([name]) => name);
  const busy = backend.slots.filter((slot) => slot.state === "busy").length;
  return html`<${Panel} title=${seen(backend.name)} actions=${html`<${Badge} kind=${backend.paused_s ? "warn" : (STATES[backend.state] ?? "neutral")}>${backend.paused_s ? `paused, ${Math.ceil(backend.paused_s)} s` : backend.state}<//>`}>
    ${backend.detail ? html`<p class="note bad"><${Text}>${backend.detail}<//></p>` : null}
    <dl class="counts">
      <div><dt>running</dt><dd>${backend.slots.length ? `${busy} of ${backend.slots.length}` : `${backend.running}${backend.concurrency ? ` of ${backend.concurrency}` : ""}`}</dd></div>
      <div><dt>tokens a slot</dt><dd><${Num} n=${backend.context} /></dd></div>
      <div><dt>queue</dt><dd class="plain"><${Queue} queue=${backend.queue} /></dd></div>
    </dl>
    ${backend.slots.length ? html`<ul class="slots">${backend.slots.map((slot) => html`<${Slot} key=${slot.slot} slot=${slot} context=${backend.context} />`)}</ul>`
      : html`<p class="dim">This kind of backend has no slots of its own that could be shown.</p>`}
    <${Shares} shares=${backend.shares} total=${backend.slots.length || backend.concurrency} />
    <p class="dim foot">${seen(backend.kind)} at <code><${Text}>${backend.url}<//></code>${called.length ? html`, asked for as ${called.map((name) => html`<code key=${name}>${seen(name)}</code> `)}` : null}</p>
  <//>`;
}

const share = (call) => (call.prompt_tokens ? (100 * call.cached_tokens) / call.prompt_tokens : null);

// Each value's mean with those before it, as far as there are any
function means(values) {
  return values.map((_, place) => {
    const near = values.slice(Math.max(0, place - SMOOTH + 1), place + 1).filter((value) => value !== null);
    return near.length ? near.reduce((a, b) => a + b, 0) / near.length : null;
  });
}

function Charts({ calls }) {
  const lines = useMemo(() => {
    const old = [...calls].reverse();
    const first = old.map((call) => call.first_token_ms);
    const cached = old.map(share);
    return { times: old.map((call) => Date.parse(call.time) / 1000), first, queue: old.map((call) => call.queue_ms), cached, mean: means(cached) };
  }, [calls]);
  return html`<div class="grid">
    <section class="panel"><${Chart} title="Time to the first token" unit="ms" times=${lines.times} series=${[
      { label: "first token", values: lines.first },
      { label: "of it in the queue", color: "--warn", values: lines.queue },
    ]} /></section>
    <section class="panel"><${Chart} title="Prompt tokens from the cache" unit="%" times=${lines.times} series=${[
      { label: "each call", color: "--p2", values: lines.cached },
      { label: `mean of ${SMOOTH}`, values: lines.mean },
    ]} /></section>
  </div>`;
}

const median = (values) => (values.length ? [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] : null);

function Tiles({ calls }) {
  const prompt = calls.reduce((sum, call) => sum + call.prompt_tokens, 0);
  const cached = calls.reduce((sum, call) => sum + call.cached_tokens, 0);
  const middle = (name) => median(calls.map((call) => call[name]).filter((ms) => ms !== null));
  const failed = calls.filter((call) => call.error).length;
  const tiles = [
    [calls.length, "newest calls"],
    [middle("queue_ms"), "in the queue, median", "ms"],
    [middle("first_token_ms"), "to the first token, median", "ms"],
    [prompt ? Math.round((100 * cached) / prompt) : null, "of prompt tokens cached", "%"],
    [calls.reduce((sum, call) => sum + call.output_tokens, 0), "tokens written"],
    [failed, "failed"],
  ];
  return html`<div class="tiles">${tiles.map(([value, title, unit = ""]) => html`<div class="tile" key=${title}>
    <b class=${title === "failed" && value ? "bad" : ""}>${value === null ? "–" : `${value.toLocaleString("en")} ${unit}`}</b><span>${title}</span></div>`)}</div>`;
}

export default function Models({ params }) {
  const pool = useFetch("/v1/pool", { every: 1 });
  const agent = params.get("agent") ?? "";
  const query = new URLSearchParams({ limit: CALLS, ...(agent ? { agent } : {}) });
  const { data, error } = useFetch(`/v1/calls?${query}`, { on: ["model.", "assistant."], every: 3 });
  const calls = data?.calls;
  const backends = pool.data?.backends ?? [];
  return html`<main data-view="models">
    <h1 hidden>Models</h1>
    <${ErrorNote} error=${pool.error ?? error} />
    ${pool.data && !backends.length ? html`<${Panel} title="Backends"><${Empty}
      title="No model server is configured. Name one in herdr.yaml under models.backends; this works out its slots and memory:" command="herdr pool plan --help" /><//>` : null}
    <div class="backends">${backends.map((backend) => html`<${Backend} key=${backend.name} backend=${backend} names=${pool.data.names ?? {}} />`)}</div>
    ${calls?.length ? html`<${Tiles} calls=${calls} />` : null}
    ${calls?.length > 1 ? html`<${Charts} key=${agent} calls=${calls} />` : null}
    ${calls ? html`<${Panel} title="Calls" actions=${html`<${Field} label="Agent" type="search" value=${agent} placeholder="all" onInput=${(text) => retype(VIEW, params, { agent: text })} />`}>
      <${Calls} calls=${calls} chosen=${params.get("call")} isFiltered=${Boolean(agent)} onOpen=${(call) => open(VIEW, params, { call: call && params.get("call") !== call ? call : null })} /><//>` : null}
  </main>`;
}
