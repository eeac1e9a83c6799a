// What was said: each session's summary, with who decided what and why, and its newest messages.
import { html, useEffect, useState } from "../kit.js";
import { Ago, Badge, Empty, ErrorNote, Num, Panel, Text, seen } from "../parts.js";
import { api, hashOf, useFetch } from "../store.js";
import { inShell, linkTo, pathOf, retype } from "./place.js";

const VIEW = "context";
const WINDOW_TOKENS = 8192; // of a session that are read; the rest is in its messages
const ON = ["session.", "user.", "assistant.", "tool.", "test."];
const ROLES = { user: "accent", assistant: "p1" };

function Listed({ row, params, isOpen }) {
  return html`<li><a href=${linkTo(VIEW, params, { session: row.session })} aria-current=${isOpen ? "true" : undefined}>
    <b><${Text}>${row.session}<//></b>
    <span class="dim"><${Num} n=${row.messages} /> ${row.messages === 1 ? "message" : "messages"}, <${Num} n=${row.full_tokens} /> tokens, <${Ago} time=${row.updated} /></span>
    <span class="dim cut">${row.sources.map(seen).join(", ")}</span>
  </a></li>`;
}

const By = ({ item }) => html`<span class="dim by">${[item.by, item.source].filter(Boolean).map(seen).join(", ")}${item.time ? html`, <${Ago} time=${item.time} />` : null} · #${item.seq}</span>`;

function Decision({ item }) {
  return html`<li><${Text}>${item.text}<//>
    ${item.reason ? html`<p class="reason"><span class="dim">because </span><${Text}>${item.reason}<//></p>` : null}
    ${item.files?.length ? html`<p class="names">${item.files.map((path) => html`<code key=${path}><${Text}>${path}<//></code>`)}</p>` : null}
    <${By} item=${item} />${item.superseded ? html` <${Badge} kind="warn">superseded<//>` : null}</li>`;
}

const Said = ({ item }) => html`<li><${Text}>${item.text ?? item.path}<//>
  ${item.subject ? html` <code><${Text}>${item.subject}<//></code>` : null}
  ${item.actions?.length ? html` <span class="dim">${[item.actions].flat().map(seen).join(", ")}</span>` : null}
  ${item.path ? null : html`<${By} item=${item} />`}</li>`;

const PARTS = [
  ["decisions", "Decisions", Decision],
  ["questions", "Open questions", Said],
  ["errors", "Errors", Said],
  ["outcomes", "Outcomes", Said],
  ["files", "Files", Said],
];

function Summary({ data }) {
  const { summary } = data;
  const has = PARTS.filter(([kind]) => summary[kind]?.length);
  if (!has.length) return html`<${Panel} title="Summary"><p class="dim">Nothing was decided, asked or done yet, as far as the rules can tell.</p><//>`;
  return html`<${Panel} title="Summary" actions=${html`<span class="dim">by ${seen(data.summariser)}${data.saved_tokens > 0 ? `, saves ${data.saved_tokens.toLocaleString("en")} of ${data.full_tokens.toLocaleString("en")} tokens` : ""}</span>`}>
    ${has.map(([kind, title, Item]) => html`<section key=${kind} class=${`part ${kind}`}>
      <h3>${title}</h3>
      <ul class="said">${summary[kind].map((item, place) => html`<${Item} key=${`${item.seq} ${place}`} item=${item} />`)}</ul>
      ${summary.more?.[kind] ? html`<p class="dim">and ${summary.more[kind]} more</p>` : null}
    </section>`)}
  <//>`;
}

// Content as it was sent: a text, or a list of blocks
const contentOf = (content) => (typeof content === "string" ? content : JSON.stringify(content, null, 2));

function Message({ session, message }) {
  const [whole, setWhole] = useState(null);
  const [error, setError] = useState(null);
  const read = async () => {
    try {
      const page = await api(`/v1/sessions/${pathOf(session)}/messages?after=${message.seq - 1}&limit=1`);
      setWhole(contentOf(page.messages[0]?.content ?? message.text));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<li class=${`message ${message.role}`}>
    <p class="line"><${Badge} kind=${ROLES[message.role] ?? "neutral"}>${seen(message.role)}<//><span class="dim"><${Text}>${message.source}<//>, <${Ago} time=${message.time} /> · #${message.seq}</span></p>
    <p class="words"><${Text}>${whole ?? message.text}<//></p>
    ${message.whole || whole ? null : html`<button class="quiet" onClick=${read}>show all of it</button>`}
    <${ErrorNote} error=${error} />
  </li>`;
}

function One({ name }) {
  const { data, error } = useFetch(`/v1/sessions/${pathOf(name)}?tokens=${WINDOW_TOKENS}`, { on: ON, every: 10 });
  if (!data) return html`<${Panel} title="Session"><${ErrorNote} error=${error} /><//>`;
  return html`<div class="stack">
    <${Summary} data=${data} />
    <${Panel} title="Newest messages" actions=${html`<a href=${hashOf("live", { session: name })}>events</a>`}>
      ${data.more_messages ? html`<p class="dim">${data.more_messages} earlier: <code>herdr session messages ${inShell(name)}</code></p>` : null}
      <ol class="messages">${[...data.newest].reverse().map((message) => html`<${Message} key=${message.seq} session=${name} message=${message} />`)}</ol>
    <//>
  </div>`;
}

export function Sessions({ workspace, params }) {
  const { data, error } = useFetch(`/v1/sessions?workspace=${encodeURIComponent(workspace)}`, { on: ON, every: 10 });
  const newest = data?.sessions[0]?.session;
  const name = params.get("session") ?? newest;
  useEffect(() => {
    // Else what is being read would change as soon as another session says something
    if (newest && !params.get("session")) retype(VIEW, params, { workspace, tab: "sessions", session: newest });
  }, [newest, params.get("session")]);
  if (!data) return html`<${ErrorNote} error=${error} />`;
  if (!data.sessions.length && !params.get("session")) {
    return html`<${Panel} title="Sessions"><${Empty} title="Nothing was said in this workspace yet. What tools say with a session’s name is kept:"
      command=${`herdr publish user.message --session fix-cart --workspace ${inShell(workspace)} --data '{"content": "hello"}'`} /><//>`;
  }
  return html`<div class="pair">
    <${Panel} title="Sessions" actions=${html`<span class="dim">${data.sessions.length}${data.more ? ` of ${data.sessions.length + data.more}` : ""}</span>`}>
      <ul class="found">${data.sessions.map((row) => html`<${Listed} key=${row.session} row=${row} params=${params} isOpen=${row.session === name} />`)}</ul>
    <//>
    <${One} key=${name} name=${name} />
  </div>`;
}
