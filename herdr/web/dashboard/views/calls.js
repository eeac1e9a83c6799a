// The table of calls, and one of them with all its numbers.
import { html, useState } from "../kit.js";
import { Ago, Badge, Empty, Num, Table, Text, seen } from "../parts.js";
import { hashOf } from "../store.js";

const ROWS = matchMedia("(max-width: 700px)").matches ? 10 : 50; // drawn at first; on a phone each is a card
const HIT = 0.5; // of a prompt's tokens: what is new in a turn is seldom more than half of it

// Only what the record says: `changed` is the first section that is not as it was in the slot
export function whyMissed(call) {
  if (call.error || !call.prompt_tokens || call.cached_tokens / call.prompt_tokens >= HIT) return null;
  return call.changed ? `the prompt differs from its last one from ${call.changed} on` : "not known";
}

function Cache({ call }) {
  if (!call.prompt_tokens) return html`<span class="dim">–</span>`;
  const part = call.cached_tokens / call.prompt_tokens;
  return html`<${Badge} kind=${part >= HIT ? "ok" : "warn"}>${Math.round(100 * part)} %<//>`;
}

function Why({ call }) {
  const why = whyMissed(call);
  return why && why !== "not known" ? html`<${Text}>${why}<//>` : html`<span class="dim">${why ?? "–"}</span>`;
}

const ms = (n) => (n === null || n === undefined ? html`<span class="dim">–</span>` : html`<span class="num">${n.toLocaleString("en")} ms</span>`);

const COLUMNS = [
  { key: "time", title: "when", render: (call) => html`<${Ago} time=${call.time} />` },
  { key: "agent", title: "agent", render: (call) => html`<b><${Text}>${call.agent}<//></b>` },
  { key: "route", title: "route", render: (call) => html`<${Text}>${call.route}<//> <span class="dim" title="priority">${call.priority}</span>` },
  { key: "backend", title: "slot", render: (call) => (call.backend ? html`<${Text}>${call.backend}<//>${call.slot === null ? null : html` <span class="dim num">#${call.slot}</span>`}` : "–") },
  { key: "queue_ms", title: "queued", num: true, render: (call) => ms(call.queue_ms) },
  { key: "first_token_ms", title: "first token", num: true, render: (call) => ms(call.first_token_ms) },
  { key: "prompt_tokens", title: "prompt", num: true, render: (call) => html`<${Num} n=${call.prompt_tokens} />` },
  { key: "cached", title: "cached", render: (call) => html`<${Cache} call=${call} />` },
  { key: "why", title: "why not", render: (call) => html`<${Why} call=${call} />` },
  { key: "end", title: "end", render: (call) => (call.error ? html`<${Badge} kind="bad">${seen(call.error)}<//>` : html`<span class="dim">${seen(call.stop_reason ?? "–")}</span>`) },
];

function One({ call, onClose }) {
  const facts = [
    ["call", html`<code>${seen(call.call)}</code>`],
    ["model asked for", html`<${Text}>${call.model}<//>`],
    ["session", call.session ? html`<a href=${hashOf("context", { tab: "sessions", session: call.session })}><${Text}>${call.session}<//></a>` : null],
    ["in all", ms(call.total_ms)],
    ["prompt", html`<${Num} n=${call.prompt_tokens} /> tokens, <${Num} n=${call.cached_tokens} /> from the cache`],
    ["answer", html`<${Num} n=${call.output_tokens} /> tokens`],
    ["why not cached", whyMissed(call) ? html`<${Text}>${whyMissed(call)}<//>` : null],
    ["new from", call.changed && !whyMissed(call) ? html`<${Text}>${call.changed}<//> on` : null],
    ["error", call.error ? html`<${Text}>${call.error}<//>` : null],
  ];
  return html`<div class="one" role="region" aria-label="call"><dl class="facts">${facts.filter(([, value]) => value).map(([title, value]) => html`<dt key=${title}>${title}</dt><dd key=${`${title} value`}>${value}</dd>`)}</dl>
    <button class="quiet" onClick=${onClose}>close</button></div>`;
}

export function Calls({ calls, chosen, isFiltered, onOpen }) {
  const [most, setMost] = useState(ROWS);
  const call = calls.find((row) => row.call === chosen);
  const none = isFiltered
    ? html`<${Empty} title="This agent has made no call of late." />`
    : html`<${Empty} title="No model was asked yet. Point a tool at this gateway, and look at its calls here or by:" command="herdr calls" />`;
  return html`${call ? html`<${One} call=${call} onClose=${() => onOpen(null)} />` : null}
    <${Table} label="calls" columns=${COLUMNS} rows=${calls.slice(0, most)} rowKey=${(row) => row.call} selected=${chosen} onRow=${(row) => onOpen(row.call)} empty=${none} />
    ${calls.length > most ? html`<p class="after"><button class="quiet" onClick=${() => setMost(most * 4)}>${calls.length - most} more</button></p>` : null}`;
}
