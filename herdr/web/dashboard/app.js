// The frame: navigation, keys, theme and sign-in. Views are loaded when they are opened.
import { html, render, useEffect, useRef, useState } from "./kit.js";
import { Badge, Code, ErrorNote, Panel, Text } from "./parts.js";
import { api, here, onSignedOut, setHash, startLive, useLive } from "./store.js";

const VIEWS = [
  ["overview", "Overview", "o"],
  ["live", "Live", "l"],
  ["routes", "Routes", "r"],
  ["locks", "Locks", "k"],
  ["context", "Context", "c"],
  ["models", "Models", "m"],
  ["tasks", "Tasks", "t"],
  ["clients", "Clients", "p"],
];
const THEME = "herdr-theme"; // also in theme.js, which applies it before anything is drawn
const AGAIN_MS = 2000;

function useHere() {
  const [place, set] = useState(here());
  useEffect(() => {
    const moved = () => set(here());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

function useKeys(toggleHelp) {
  useEffect(() => {
    let awaits = false;
    const pressed = (event) => {
      const typing = event.target.closest?.("input, textarea, select, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") toggleHelp();
      else if (event.key === "/") {
        const search = document.querySelector("main input");
        if (search) event.preventDefault(); // else the slash is typed into it
        search?.focus();
      } else if (awaits) {
        const found = VIEWS.find(([, , key]) => key === event.key);
        if (found) location.hash = `#/${found[0]}`;
        awaits = false;
      } else awaits = event.key === "g";
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem(THEME, root.dataset.theme);
  dispatchEvent(new Event(THEME));
}

async function signOut() {
  await api("/v1/browser-sessions", { method: "DELETE" });
  location.reload();
}

const skip = () => {
  const main = document.querySelector("main");
  main.tabIndex = -1;
  main.focus();
};

function State({ follows }) {
  const live = useLive();
  if (!follows) return html`<span title="this token has no scope events:follow"><${Badge} kind="warn">not live<//></span>`;
  return html`<${Badge} kind=${live.connected ? "ok" : "bad"}>${live.connected ? "live" : "not connected"}<//>`;
}

function Bar({ view, me, follows }) {
  const live = useLive();
  const links = useRef();
  useEffect(() => links.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [view]);
  return html`<nav class="bar" aria-label="views">
    <button class="skip" onClick=${skip}>skip to the content</button>
    <a class="brand" href="#/overview"><img src="/dashboard/icon.svg" alt="" width="22" height="22" />Herdr</a>
    <div class="links" ref=${links}>${VIEWS.map(([name, title, key]) => html`<a key=${name} href=${`#/${name}`} title=${`g ${key}`}
      aria-current=${name === view ? "page" : undefined}>${title}</a>`)}</div>
    <div class="state">
      ${live.isNewer ? html`<button onClick=${() => location.reload()}>version ${live.version}: reload</button>` : null}
      <span role="status"><${State} follows=${follows} /></span>
      ${me.open ? null : html`<span class="dim cut"><${Text}>${me.name}<//></span><button class="quiet" onClick=${signOut}>sign out</button>`}
      <button class="quiet" onClick=${toggleTheme} aria-label="light or dark">◐</button>
    </div>
  </nav>`;
}

function View({ name, params }) {
  const [loaded, set] = useState({ name: null, View: null, error: null });
  useEffect(() => {
    let gone = false;
    const known = VIEWS.some(([view]) => view === name);
    const loading = known ? import(`./views/${name}.js`) : Promise.reject(new Error(`There is no view called ${name}.`));
    loading.then(
      (module) => gone || set({ name, View: module.default, error: null }),
      (error) => gone || set({ name, View: null, error }),
    );
    return () => (gone = true);
  }, [name]);
  if (loaded.name !== name) return html`<main aria-busy="true"></main>`;
  if (loaded.error) return html`<main><${ErrorNote} error=${loaded.error} /></main>`;
  return html`<${loaded.View} params=${params} />`;
}

function Help({ onClose }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} class="help" aria-label="keys" onClose=${onClose}
    onKeyDown=${(event) => event.key === "?" && dialog.current.close()}>
    <h2>Keys</h2>
    <dl>${VIEWS.map(([name, title, key]) => html`<div key=${name}><dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${title}</dd></div>`)}
      <div><dt><kbd>/</kbd></dt><dd>to the filter</dd></div>
      <div><dt><kbd>↑</kbd> <kbd>↓</kbd></dt><dd>from row to row</dd></div>
      <div><dt><kbd>Enter</kbd></dt><dd>open the row</dd></div>
      <div><dt><kbd>p</kbd></dt><dd>in Live: pause, go on</dd></div>
      <div><dt><kbd>Esc</kbd></dt><dd>close</dd></div>
      <div><dt><kbd>?</kbd></dt><dd>this list</dd></div></dl>
    <div class="actions"><button onClick=${() => dialog.current.close()}>Close</button></div>
  </dialog>`;
}

const SignIn = ({ error }) => html`<main class="sign-in">
  <${Panel} title="Sign in">
    <p>This gateway asks for a token. Run this where the token is set, and open the link that it prints:</p>
    <${Code} text="herdr open" />
    ${error.isOfLink ? html`<${ErrorNote} error=${error} />` : null}
  <//>
</main>`;

const Unreachable = ({ error }) => html`<main class="sign-in">
  <${Panel} title="No answer">
    <${ErrorNote} error=${error} />
    <p>See how the gateway is where it runs:</p>
    <${Code} text="herdr doctor" />
  <//>
</main>`;

async function signIn() {
  const ticket = /^#login=(.+)$/.exec(location.hash)?.[1];
  if (!ticket) return;
  setHash("overview"); // it works once, and has no place in the history
  await api("/v1/browser-sessions", { method: "POST", body: { ticket } });
}

const canFollow = (me) => me.scopes === null || me.scopes.includes("events:follow");

// Who is signed in. Looked up again when a link is opened in this tab, and, while nobody is, when one comes back to it
function useMe() {
  const [state, set] = useState({ me: null, error: null });
  useEffect(() => {
    let isIn = false;
    let timer = 0;
    const look = async () => {
      clearTimeout(timer);
      try {
        const me = await api("/v1/me");
        isIn = true;
        set({ me, error: null });
        if (canFollow(me)) startLive();
      } catch (error) {
        if (error.status !== 401) set({ me: null, error });
        if (error.status !== 401) timer = setTimeout(look, AGAIN_MS);
      }
    };
    const linked = () => signIn().catch((error) => set({ me: null, error: Object.assign(error, { isOfLink: true }) })).then(look);
    onSignedOut((error) => {
      isIn = false;
      set((before) => ({ me: null, error: before.error?.isOfLink ? before.error : error }));
    });
    addEventListener("hashchange", () => location.hash.startsWith("#login=") && linked());
    addEventListener("focus", () => isIn || look());
    linked();
  }, []);
  return state;
}

function App() {
  const place = useHere();
  const { me, error } = useMe();
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp((shown) => !shown));
  useEffect(() => {
    const title = VIEWS.find(([name]) => name === place.view)?.[1] ?? "";
    document.title = title ? `${title} · Herdr` : "Herdr";
  }, [place.view]);
  if (!me && error) return error.status === 401 ? html`<${SignIn} error=${error} />` : html`<${Unreachable} error=${error} />`;
  if (!me) return html`<main aria-busy="true"></main>`;
  return html`<${Bar} view=${place.view} me=${me} follows=${canFollow(me)} />
    <${View} name=${place.view} params=${place.params} />
    ${help ? html`<${Help} onClose=${() => setHelp(false)} />` : null}`;
}

render(html`<${App} />`, document.getElementById("app"));
