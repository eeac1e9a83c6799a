// Components that all views use. What events hold is only ever put into text nodes.
import { html, useEffect, useRef, useState } from "./kit.js";

// Characters that nobody sees, or that turn the text around, are shown as what they are
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]", // the last: letters as invisible tags
  "gu",
);

function escaped(character) {
  const code = character.codePointAt(0).toString(16).padStart(4, "0");
  return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
}

export const seen = (text) => String(text).replace(HIDDEN, escaped);

export const Text = ({ children }) => html`<span class="text">${seen([children].flat().join(""))}</span>`;
export const Badge = ({ kind = "neutral", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;
export const Num = ({ n }) => html`<span class="num">${n === null || n === undefined ? "–" : n.toLocaleString("en")}</span>`;

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1024;
  }
}
export const Bytes = ({ n }) => html`<span class="num">${bytes(n)}</span>`;

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const [size, unit] = UNITS.find(([size]) => s >= size) ?? [1, "s"];
  return `${Math.floor(s / size)} ${unit}`;
}

function useClock(every = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const beat = setInterval(() => set(Date.now()), every);
    return () => clearInterval(beat);
  }, []);
  return now;
}

export function Ago({ time }) {
  const now = useClock(time && Date.now() - Date.parse(time) < 60000 ? 1000 : 15000);
  if (!time) return html`<span class="dim">never</span>`;
  const age = (now - Date.parse(time)) / 1000;
  return html`<time datetime=${time} title=${time}>${age < 2 ? "now" : `${span(age)} ago`}</time>`;
}

export function Left({ time }) {
  const now = useClock();
  if (!time) return html`<span class="dim">–</span>`;
  const left = (Date.parse(time) - now) / 1000;
  return html`<time datetime=${time} title=${time} class=${left < 10 ? "warn" : ""}>${left <= 0 ? "over" : span(left)}</time>`;
}

export const ErrorNote = ({ error }) =>
  error ? html`<p class="note bad" role="alert"><${Text}>${error.detail ?? error.message}<//></p>` : null;

export function Copy({ text, label, children = "copy" }) {
  const [copied, set] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      set(true);
      setTimeout(() => set(false), 1500);
    } catch {
      /* no clipboard here: the text can be selected */
    }
  };
  return html`<button class="quiet" onClick=${copy} aria-label=${label}>${copied ? "copied" : children}</button>`;
}

export const Code = ({ text }) => html`<span class="code"><code>${text}</code>
  <${Copy} text=${text} label=${`copy ${text}`} /></span>`;

export const Empty = ({ title, command, children }) => html`<div class="empty">
  <p>${title}</p>
  ${children}
  ${command ? html`<${Code} text=${command} />` : null}
</div>`;

export const Panel = ({ title, actions, children, class: more = "" }) => html`<section class=${`panel ${more}`} aria-label=${title}>
  <header><h2>${title}</h2><div class="actions">${actions}</div></header>
  ${children}
</section>`;

export const Field = ({ label, value, onInput, placeholder = "", type = "text", ...more }) => html`<label class="field">
  <span>${label}</span>
  <input type=${type} value=${value} placeholder=${placeholder} spellcheck=${false} autocomplete="off"
    onInput=${(event) => onInput(event.target.value)} ...${more} />
</label>`;

export const Tabs = ({ tabs, value, onChange }) => html`<div class="tabs" role="tablist">
  ${tabs.map(([key, title]) => html`<button key=${key} role="tab" aria-selected=${key === value} onClick=${() => onChange(key)}>${title}</button>`)}
</div>`;

export function Table({ columns, rows, empty, onRow, selected, rowKey = (row) => row.id, label }) {
  if (!rows?.length) return empty ?? null;
  const keyed = (row) => (event) => {
    const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (event.target !== event.currentTarget || !(next || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (next) event.target[next]?.focus();
    else onRow(row);
  };
  return html`<div class="scroller"><table aria-label=${label}>
    <thead><tr>${columns.map((c) => html`<th key=${c.key} scope="col" class=${c.num ? "num" : ""}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${rowKey(row)} class=${onRow ? "open" : ""}
      aria-selected=${onRow ? rowKey(row) === selected : undefined} tabindex=${onRow ? 0 : undefined}
      onClick=${onRow ? () => onRow(row) : undefined} onKeyDown=${onRow ? keyed(row) : undefined}>
      ${columns.map((c) => html`<td key=${c.key} data-title=${c.title} class=${c.num ? "num" : ""}>
        ${c.render ? c.render(row) : html`<${Text}>${row[c.key] ?? "–"}<//>`}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

const LEAVES = 100; // of one object or array that are drawn; more at a click
const DEEP = 60;
const LONG = 2000; // characters of one text that are drawn; all at a click

function Words({ text }) {
  const [all, set] = useState(false);
  if (text.length <= LONG || all) return html`<span class="value string">“${seen(text)}”</span>`;
  return html`<span class="value string">“${seen(text.slice(0, LONG))}…</span>
    <button class="quiet" onClick=${() => set(true)}>${(text.length - LONG).toLocaleString("en")} more characters</button>`;
}

export function Tree({ value, name, depth = 0, open = depth < 2 }) {
  const [isOpen, set] = useState(open);
  const [most, setMost] = useState(LEAVES);
  const label = name === undefined ? null : html`<span class="key"><${Text}>${name}<//>: </span>`;
  if (value === null || typeof value !== "object") {
    const kind = value === null ? "null" : typeof value;
    return html`<div class="leaf">${label}${kind === "string" ? html`<${Words} text=${value} />` : html`<span class=${`value ${kind}`}>${String(value)}</span>`}</div>`;
  }
  const entries = Array.isArray(value) ? value.map((v, i) => [i, v]) : Object.entries(value);
  const said = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (!entries.length || depth > DEEP) return html`<div class="leaf">${label}<span class="value">${said}</span></div>`;
  return html`<div class="branch">
    <button class="fold" aria-expanded=${isOpen} onClick=${() => set(!isOpen)}>${isOpen ? "▾" : "▸"} ${label}<span class="dim">${said}</span></button>
    ${isOpen ? html`<div class="inner">
      ${entries.slice(0, most).map(([key, inner]) => html`<${Tree} key=${key} name=${key} value=${inner} depth=${depth + 1} />`)}
      ${entries.length > most ? html`<button class="quiet" onClick=${() => setMost(most * 4)}>${entries.length - most} more</button>` : null}
    </div>` : null}
  </div>`;
}

export function Confirm({ title, text, action, onYes, onNo, children }) {
  const dialog = useRef();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus(); // it is taken away, not closed, and then nothing gives the focus back
  }, []);
  const yes = (event) => {
    event.preventDefault();
    onYes();
  };
  return html`<dialog ref=${dialog} onClose=${onNo} aria-label=${title}>
    <div class="form">
      <h2>${title}</h2>
      ${text ? html`<p>${text}</p>` : null}
      ${children}
      <div class="actions">
        <button onClick=${onNo}>Cancel</button>
        <button class="danger" onClick=${yes}>${action}</button>
      </div>
    </div>
  </dialog>`;
}
