// Find definitions, and for one of them who calls it and what it calls.
import { html } from "../kit.js";
import { Badge, Empty, ErrorNote, Field, Panel, Text, seen } from "../parts.js";
import { useFetch } from "../store.js";
import { linkTo, pathOf, retype } from "./place.js";

const VIEW = "context";
const FOUND_MAX = 50; // rows: whoever needs more narrows the search
const HOW = {
  name: ["warn", "by name", "several definitions have this name, or the one that is called cannot be told"],
  external: ["neutral", "elsewhere", "what is called is not in this workspace"],
};

// A plain word finds whatever contains it
const globbed = (text) => (/[*?[.]/.test(text) ? text : `*${text}*`);

const Place = ({ path, line, lines }) => html`<span class="dim mono"><${Text}>${path}<//>${line ? `:${line}` : (lines ?? []).map((n) => `:${n}`).join(" ")}</span>`;

function Found({ symbol, params, isOpen }) {
  return html`<li><a href=${linkTo(VIEW, params, { symbol: symbol.symbol })} aria-current=${isOpen ? "true" : undefined}>
    <span class="line"><${Badge}>${symbol.kind}<//><b class="mono"><${Text}>${symbol.name}<//></b></span>
    <${Place} path=${symbol.path} line=${symbol.line} />
  </a></li>`;
}

function How({ resolution }) {
  const [kind, text, why] = HOW[resolution] ?? [];
  return text ? html`<span title=${why}><${Badge} kind=${kind}>${text}<//></span>` : null;
}

function Edge({ target, signature, path, lines, resolution, call, params }) {
  return html`<li>
    <span class="line">${target ? html`<a class="mono" href=${linkTo(VIEW, params, { symbol: target })}><${Text}>${target.split("::").at(-1)}<//></a>`
      : html`<span class="mono"><${Text}>${call}<//></span>`}
      <${How} resolution=${resolution} /></span>
    <${Place} path=${path} lines=${lines} />
    ${signature ? html`<code class="signature"><${Text}>${signature}<//></code>` : null}
  </li>`;
}

function Edges({ title, state, rows, more, none }) {
  if (state.error) return html`<${Panel} title=${title}><${ErrorNote} error=${state.error} /><//>`;
  return html`<${Panel} title=${title} actions=${state.data ? html`<span class="dim">${rows.length}${more ? ` and ${more} more` : ""}</span>` : null}>
    ${state.data && !rows.length ? html`<p class="dim">${none}</p>` : html`<ul class="edges">${rows}</ul>`}
  <//>`;
}

function One({ workspace, symbol, params }) {
  const at = `/v1/context/${pathOf(workspace)}/graph`;
  const query = `symbol=${encodeURIComponent(symbol)}&limit=100`;
  const callers = useFetch(`${at}/callers?${query}`, { on: ["context."] });
  const callees = useFetch(`${at}/callees?${query}`, { on: ["context."] });
  const definition = callers.data?.definitions[0];
  const inward = (callers.data?.callers ?? []).map((edge) => html`<${Edge} key=${`${edge.symbol} ${edge.path} ${edge.lines}`} ...${edge} target=${edge.symbol} params=${params} />`);
  const outward = (callees.data?.callees ?? []).map((edge) => html`<${Edge} key=${`${edge.call} ${edge.path} ${edge.lines}`} ...${edge}
    target=${edge.targets[0]?.symbol} signature=${edge.targets[0]?.signature} params=${params} />`);
  return html`<div class="stack">
    <${Panel} title="Definition">
      ${definition ? html`<p class="line"><${Badge}>${definition.kind}<//><b class="mono"><${Text}>${definition.name}<//></b><${Place} path=${definition.path} line=${definition.line} /></p>
        <pre class="listing">${seen(definition.signature)}</pre>` : html`<p class="mono"><${Text}>${symbol}<//></p>`}
    <//>
    <${Edges} title="Called by" state=${callers} rows=${inward} more=${callers.data?.more} none="No call of it was found." />
    <${Edges} title="Calls" state=${callees} rows=${outward} more=${callees.data?.more} none="It calls nothing." />
  </div>`;
}

export function Symbols({ workspace, params }) {
  const name = params.get("name") ?? "";
  const symbol = params.get("symbol");
  const query = `name=${encodeURIComponent(globbed(name.trim()))}&limit=${FOUND_MAX}`;
  const { data, error } = useFetch(name.trim() ? `/v1/context/${pathOf(workspace)}/graph/symbols?${query}` : null, { on: ["context."] });
  const count = data ? html`<span class="dim">${data.symbols.length}${data.more ? ` of ${data.symbols.length + data.more}` : ""}</span>` : null;
  return html`<div class="pair">
    <${Panel} title="Find a symbol" actions=${count}>
      <${Field} label="Name" type="search" value=${name} placeholder="total, Cart.*, *_price" onInput=${(text) => retype(VIEW, params, { name: text })} />
      <${ErrorNote} error=${name.trim() ? error : null} />
      ${data && !data.symbols.length ? html`<${Empty} title="No symbol has such a name." />` : null}
      ${name.trim() || symbol ? null : html`<${Empty} title="Type a name, or ask in a terminal:" command="herdr symbols '*total*'" />`}
      ${data ? html`<ul class="found">${data.symbols.map((found) => html`<${Found} key=${found.symbol} symbol=${found} params=${params} isOpen=${found.symbol === symbol} />`)}</ul>` : null}
    <//>
    ${symbol ? html`<${One} key=${symbol} workspace=${workspace} symbol=${symbol} params=${params} />`
      : html`<${Panel} title="Callers and callees"><${Empty} title="Open a symbol to see who calls it, and what it calls." /><//>`}
  </div>`;
}
