// How the gateway is, in words and over the last five minutes.
import { Chart } from "../chart.js";
import { html } from "../kit.js";
import { Badge, Empty, ErrorNote, Num, Panel, Text, bytes, span } from "../parts.js";
import { useFetch, useLive } from "../store.js";

const WORDS = { ok: "All is well", degraded: "It works, but not all is well", failing: "Nothing can be stored" };
const KINDS = { ok: "ok", degraded: "warn", failing: "bad" };

function Health({ health, error, live }) {
  if (!health) return html`<${Panel} title="Health"><${ErrorNote} error=${error} /><//>`;
  const reasons = [...(health.reasons ?? []), ...(health.troubles ?? []), ...(health.warnings ?? [])];
  const store = health.store ?? {};
  return html`<${Panel} title="Health">
    <div class="health">
      <${Badge} kind=${KINDS[health.status] ?? "neutral"}>${health.status}<//>
      <span class="big">${live.connected ? (WORDS[health.status] ?? health.status) : "The gateway does not answer; what is shown is how it was"}</span>
      <span class="dim">version ${health.version}, up ${span(health.uptime_s)}, ${store.head ? `events ${store.first} to ${store.head}` : "no events yet"}, ${bytes(store.bytes)} on disk</span>
    </div>
    ${reasons.length ? html`<ul class="reasons">${[...new Set(reasons)].map((reason) => html`<li key=${reason}><${Text}>${reason}<//></li>`)}</ul>` : null}
  <//>`;
}

const Tile = ({ value, title, kind = "" }) => html`<div class="tile"><b class=${kind}>${value}</b><span>${title}</span></div>`;

function Tiles({ sample, health }) {
  const waiting = sample.depth.reduce((a, b) => a + b, 0);
  const lost = Object.values(sample.dropped).reduce((a, b) => a + b, 0);
  const { busy, slots, queued } = sample.model;
  return html`<div class="tiles">
    <${Tile} value=${Math.round(sample.published_per_s)} title="published per second" />
    <${Tile} value=${Math.round(sample.delivered_per_s)} title="delivered per second" />
    <${Tile} value=${waiting} title="waiting for the log" kind=${waiting > 1000 ? "warn" : ""} />
    <${Tile} value=${lost.toLocaleString("en")} title="dropped since the start" kind=${lost ? "warn" : ""} />
    <${Tile} value=${sample.sse + sample.websocket} title="open connections" />
    <${Tile} value=${sample.locks} title=${sample.lock_waiters ? `locks held, ${sample.lock_waiters} waiting` : "locks held"} />
    <${Tile} value=${slots ? `${busy}/${slots}` : "–"} title=${slots ? (queued ? `model slots busy, ${queued} queued` : "model slots busy") : "no model backend"} />
    <${Tile} value=${Object.keys(health?.workspaces ?? {}).length} title="folders watched" />
  </div>`;
}

// Counts since the start, as how many a second
function rates(samples, read) {
  return samples.map((sample, place) => (place ? Math.max(0, read(sample) - read(samples[place - 1])) : 0));
}

function Charts({ samples }) {
  const times = samples.map((sample) => Date.parse(sample.t) / 1000);
  const of = (read) => samples.map(read);
  const dropped = (reason) => rates(samples, (sample) => sample.dropped[reason]);
  return html`<div class="grid charts">
    <section class="panel"><${Chart} title="Events per second" times=${times} series=${[
      { label: "published", values: of((s) => s.published_per_s) },
      { label: "delivered", values: of((s) => s.delivered_per_s) },
    ]} /></section>
    <section class="panel"><${Chart} title="Waiting for the log, by lane" times=${times} series=${["P0", "P1", "P2"].map((lane, n) => ({
      label: lane, color: `--p${n}`, values: of((s) => s.depth[n]),
    }))} /></section>
    <section class="panel"><${Chart} title="Dropped per second, by reason" times=${times} series=${[
      { label: "over the rate", color: "--warn", values: dropped("rate_limited") },
      { label: "lanes full", color: "--bad", values: dropped("overloaded") },
      { label: "too late", color: "--p2", values: dropped("expired") },
    ]} /></section>
    <section class="panel"><${Chart} title="Model calls" times=${times} series=${[
      { label: "running", values: of((s) => s.model.busy) },
      { label: "queued", color: "--warn", values: of((s) => s.model.queued) },
    ]} /></section>
  </div>`;
}

function Workspaces({ workspaces }) {
  const rows = Object.entries(workspaces ?? {});
  if (!rows.length) {
    return html`<${Panel} title="Watched folders"><${Empty} title="No folder is watched, so no tool hears of changed files." command="herdr workspace add ." /><//>`;
  }
  return html`<${Panel} title="Watched folders"><dl class="facts">${rows.map(([name, state]) => html`<dt key=${name}><${Text}>${name}<//></dt>
    <dd>${state.status}, <${Num} n=${state.files} /> files${state.note ? html`, <${Text}>${state.note}<//>` : null}</dd>`)}</dl><//>`;
}

export default function Overview() {
  const live = useLive();
  const { data: health, error } = useFetch("/healthz", { every: 5, on: ["herdr."] });
  const sample = live.samples.at(-1);
  const isEmpty = live.connected && !live.head;
  return html`<main data-view="overview">
    <h1 hidden>Overview</h1>
    <${Health} health=${health} error=${error} live=${live} />
    ${sample ? html`<${Tiles} sample=${sample} health=${health} />` : null}
    ${isEmpty ? html`<${Panel} title="Events"><${Empty} title="No event yet. Publish the first one:" command="herdr publish tool.result --source me" /><//>` : null}
    ${live.samples.length > 1 ? html`<${Charts} samples=${live.samples} />` : null}
    <${Workspaces} workspaces=${health?.workspaces} />
  </main>`;
}
