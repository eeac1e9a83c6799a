// One event: its envelope, its payload as a tree, and the chain of its cause.
import { html, useEffect, useLayoutEffect, useRef } from "../kit.js";
import { Badge, Bytes, Copy, ErrorNote, Panel, Text, Tree } from "../parts.js";
import { hashOf, useFetch } from "../store.js";
import { Chain } from "./chain.js";

const LINKS = {
  session: (value) => hashOf("context", { tab: "sessions", session: value }),
  task: (value) => hashOf("tasks", { task: value }),
  source: (value) => hashOf("live", { source: value }),
  based_on: (value) => hashOf("live", { event: value }),
};

const FIRST = ["type", "source", "subject", "workspace", "session", "task", "priority", "class", "tags", "accepted"];
const placeOf = ([name]) => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1); // what is not in the list: last

const isSaid = ([, value]) => value !== null && value !== undefined && value.length !== 0;
const textOf = (value) => (Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value);

function Value({ name, value }) {
  if (name === "priority") return html`<${Badge} kind=${value.toLowerCase()}>${value}<//>`;
  const text = html`<${Text}>${textOf(value)}<//>`;
  return LINKS[name] ? html`<a href=${LINKS[name](value)}>${text}</a>` : text;
}

// The tail has events without what is large; then the whole is fetched, as for one that is older than the tail
export function EventPanel({ seq, known, events, onOpen, onClose }) {
  const last = useRef(null); // an event that is open may leave the tail
  if (known || last.current?.seq !== seq) last.current = known ?? null;
  const { data: fetched, error } = useFetch(last.current && !last.current.ref ? null : `/v1/events/${seq}`);
  const event = fetched ?? last.current;
  useLayoutEffect(() => {
    // With the drawing, not after it: whoever sees the event may press the key
    const pressed = ({ key, target }) => key === "Escape" && !target.closest?.("dialog") && onClose();
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [onClose]);
  useEffect(() => {
    if (matchMedia("(max-width: 900px)").matches) document.querySelector(".panel.event").scrollIntoView();
  }, [seq, event === null]);
  const close = html`<button class="quiet" onClick=${onClose}>close</button>`;
  if (!event) return html`<${Panel} title=${`Event ${seq}`} class="event" actions=${close}><${ErrorNote} error=${error} /><//>`;
  const { seq: _, data, data_bytes: size, ref, ...envelope } = event;
  const facts = Object.entries(envelope).filter(isSaid).sort((a, b) => placeOf(a) - placeOf(b));
  return html`<${Panel} title=${`Event ${seq}`} class="event" actions=${html`<a href=${hashOf("routes", { event: seq })}>who gets it</a>
    <${Copy} text=${JSON.stringify(event, null, 2)} label="copy the event as JSON">copy JSON<//>${close}`}>
    <${ErrorNote} error=${error} />
    <dl class="facts">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt>
      <dd class="mono"><${Value} name=${name} value=${value} /></dd>`)}</dl>
    ${data === undefined ? html`<p class="dim">payload of <${Bytes} n=${size} /></p>` : html`<${Tree} key=${seq} name="data" value=${data} />`}
    <${Chain} key=${`chain ${seq}`} event=${event} events=${events} onOpen=${onOpen} />
  <//>`;
}
