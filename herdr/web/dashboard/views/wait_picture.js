// The picture of who waits for whom. SVG puts no dots where text is cut, so names are cut here; the title is whole.
import { html } from "../kit.js";
import { seen } from "../parts.js";
import { BOX, layOut } from "./wait_graph.js";
import { linkTo } from "./place.js";

const NAME_MAX = 20; // characters of the box's width

function short(name) {
  const text = [...seen(name)]; // by characters: half of one is none
  return text.length > NAME_MAX ? `${text.slice(0, NAME_MAX - 1).join("")}…` : text.join("");
}

function state(name, locks, isWaiting) {
  const held = locks.filter((lock) => lock.owner === name).length;
  const has = held ? `holds ${held}` : "";
  return [has, isWaiting ? "waits" : ""].filter(Boolean).join(", ") || "holds nothing";
}

function Box({ box, locks, isWaiting, params }) {
  const said = state(box.name, locks, isWaiting);
  return html`<a href=${linkTo("locks", params, { owner: box.name })} aria-label=${`${seen(box.name)}: ${said}`}>
    <g class=${`box ${isWaiting ? "waits" : "free"}`} transform=${`translate(${box.x} ${box.y})`}>
      <title>${seen(box.name)}</title>
      <rect width=${BOX.width} height=${BOX.height} rx="8" />
      <svg x="10" width=${BOX.width - 16} height=${BOX.height}>
        <text y="16" class="name">${short(box.name)}</text>
        <text y="30" class="said">${said}</text>
      </svg>
    </g></a>`;
}

export function WaitPicture({ arrows, locks, params }) {
  const { boxes, lines, width, height, left } = layOut(arrows);
  const waiting = new Set(arrows.map((arrow) => arrow.from));
  const told = arrows.map((arrow) => `${seen(arrow.from)} waits for ${seen(arrow.to)}`).join("; ");
  return html`<div class="picture">
    <svg role="group" aria-label=${told} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
      <defs><marker id="arrowhead" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
      ${lines.map((line) => html`<path key=${line.key} class=${line.isDeclared ? "wait declared" : "wait"} d=${line.path} marker-end="url(#arrowhead)">
        <title>${`${seen(line.from)} waits for ${seen(line.to)}${line.reasons.length ? `: ${seen(line.reasons.join("; "))}` : ""}`}</title></path>`)}
      ${boxes.map((box) => html`<${Box} key=${box.name} box=${box} locks=${locks} isWaiting=${waiting.has(box.name)} params=${params} />`)}
    </svg>
  </div>
  <p class="picture-key dim"><span class="stroke"></span> for a lock <span class="stroke declared"></span> declared, for a result
    ${left ? html` · ${left} more names are in the tables` : null}</p>`;
}
