// The frame: navigation, keys, theme and sign-in. Views are loaded when they are opened.
import { html, render, useEffect, useState } from "./kit.js";
import { ErrorNote, Badge, Code, Panel } from "./parts.js";
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
const THEME = "herdr-theme";

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
      else if (awaits) {
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

function Bar({ view, me }) {
  const live = useLive();
  return html`<nav class="bar" aria-label="views">
    <a class="brand" href="#/overview"><img src="/dashboard/icon.svg" alt="" width="22" height="22" />Herdr</a>
    <div class="links">${VIEWS.map(([name, title, key]) => html`<a key=${name} href=${`#/${name}`} title=${`g ${key}`}
      aria-current=${name === view ? "page" : undefined}>${title}</a>`)}</div>
    <div class="state">
      <span role="status"><${Badge} kind=${live.connected ? "ok" : "bad"}>${live.connected ? "live" : "not connected"}<//></span>
      ${me && !me.open ? html`<span class="dim">${me.name}</span>` : null}
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

const Help = ({ onClose }) => html`<div class="help" role="dialog" aria-label="keys">
  <${Panel} title="Keys" actions=${html`<button class="quiet" onClick=${onClose}>close</button>`}>
    <dl>${VIEWS.map(([name, title, key]) => html`<div key=${name}><dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${title}</dd></div>`)}
      <div><dt><kbd>?</kbd></dt><dd>this list</dd></div></dl>
  <//>
</div>`;

const SignIn = ({ error }) => html`<main class="sign-in">
  <${Panel} title="Sign in">
    <p>This gateway asks for a token. Run this where the token is set, and open the link that it prints:</p>
    <${Code} text="herdr open" />
    <${ErrorNote} error=${error} />
  <//>
</main>`;

async function signIn() {
  const ticket = /^#login=(.+)$/.exec(location.hash)?.[1];
  if (!ticket) return;
  setHash("overview"); // it works once, and has no place in the history
  await api("/v1/browser-sessions", { method: "POST", body: { ticket } });
}

function App() {
  const place = useHere();
  const [me, setMe] = useState(null);
  const [error, setError] = useState(null);
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp((shown) => !shown));
  useEffect(() => {
    const look = async () => {
      try {
        setMe(await api("/v1/me"));
        setError(null);
        startLive();
      } catch (problem) {
        setError((before) => before ?? problem);
        if (problem.status === 0) setTimeout(look, 2000);
      }
    };
    signIn().catch(setError).then(look);
    onSignedOut(() => setMe(null));
  }, []);
  useEffect(() => {
    const title = VIEWS.find(([name]) => name === place.view)?.[1] ?? "";
    document.title = title ? `${title} · Herdr` : "Herdr";
  }, [place.view]);
  if (!me) return error ? html`<${SignIn} error=${error} />` : html`<main aria-busy="true"></main>`;
  return html`<${Bar} view=${place.view} me=${me} />
    <${View} name=${place.view} params=${place.params} />
    ${help ? html`<${Help} onClose=${() => setHelp(false)} />` : null}`;
}

document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "";
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
