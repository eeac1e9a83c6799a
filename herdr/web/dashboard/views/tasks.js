// The board of tasks by state, and how one of them went from hand to hand.
import { html, useState } from "../kit.js";
import { Ago, Badge, Empty, ErrorNote, Field, Left, Panel, Tabs, Text, seen } from "../parts.js";
import { hashOf, useFetch } from "../store.js";
import { changed, linkTo, open, retype } from "./place.js";
import { Create } from "./task_forms.js";
import { FINAL, STATES, Task } from "./task.js";

const VIEW = "tasks";
const LIMIT = 500;
const CARDS = 30; // of a column that are drawn at first
const COLUMNS = [
  ["submitted", "To do", ["submitted"]],
  ["working", "In work", ["working"]],
  ["input_required", "Asks", ["input_required"]],
  ["ended", "Ended", FINAL],
];
const USUAL = ["architect", "coder", "reviewer", "tester"]; // in the order in which work goes through them

// The columns: title and tasks of each; by role, what has ended stands last
function columnsOf(tasks, isByRole) {
  if (!isByRole) return COLUMNS.map(([name, title, states]) => ({ name, title, tasks: tasks.filter((task) => states.includes(task.state)) }));
  const roles = [...new Set(tasks.map((task) => task.role))].sort();
  const inOrder = [...USUAL.filter((role) => roles.includes(role)), ...roles.filter((role) => !USUAL.includes(role))];
  const ended = (task) => Number(FINAL.includes(task.state));
  return inOrder.map((role) => ({ name: "role", title: role, tasks: tasks.filter((task) => task.role === role).sort((a, b) => ended(a) - ended(b)) }));
}

function Card({ task, params, isOpen, isByRole }) {
  const [kind, word] = STATES[task.state] ?? ["neutral", task.state];
  return html`<a class="card" href=${linkTo(VIEW, params, { task: task.task, create: null })} aria-current=${isOpen ? "true" : undefined}>
    <b><${Text}>${task.title}<//></b>
    <span class="names">${isByRole ? null : html`<${Badge} kind="accent">${seen(task.role)}<//>`}${isByRole || FINAL.includes(task.state) ? html`<${Badge} kind=${kind}>${word}<//>` : null}
      ${task.holder ? html`<span class="dim cut">${seen(task.holder)}</span>` : null}</span>
    ${task.question ? html`<span class="ask"><${Text}>${task.question}<//></span>` : null}
    <span class="dim"><${Ago} time=${task.updated} />${task.expires ? html`, <${Left} time=${task.expires} /> left` : null} · ${task.steps} ${task.steps === 1 ? "step" : "steps"}</span>
  </a>`;
}

function Column({ name, title, tasks, params, isByRole }) {
  const [most, setMost] = useState(CARDS);
  return html`<section class=${`column ${name}`} aria-label=${seen(title)}>
    <h2><${Text}>${title}<//> <span class="dim num">${tasks.length}</span></h2>
    ${tasks.slice(0, most).map((task) => html`<${Card} key=${task.task} task=${task} params=${params} isOpen=${task.task === params.get("task")} isByRole=${isByRole} />`)}
    ${tasks.length ? null : html`<p class="dim none">none</p>`}
    ${tasks.length > most ? html`<button class="quiet" onClick=${() => setMost(most * 4)}>${tasks.length - most} more</button>` : null}
  </section>`;
}

function Filters({ tasks, params }) {
  const pick = (name, values) => html`<label class="field narrow"><span>${name[0].toUpperCase()}${name.slice(1)}</span>
    <select value=${params.get(name) ?? ""} onChange=${(event) => open(VIEW, params, { [name]: event.target.value })}>
      <option value="">all</option>${[...new Set([...values, params.get(name)].filter(Boolean))].sort().map((value) => html`<option key=${value} value=${value}>${seen(value)}</option>`)}
    </select></label>`;
  return html`<div class="filters">
    ${tasks.length ? html`<${Field} label="Find" type="search" value=${params.get("q") ?? ""} placeholder="title, holder or question" onInput=${(q) => retype(VIEW, params, { q })} />
    ${pick("role", tasks.map((task) => task.role))}
    ${pick("workspace", tasks.map((task) => task.workspace))}
    <${Tabs} tabs=${[["", "By state"], ["role", "By role"]]} value=${params.get("by") === "role" ? "role" : ""} onChange=${(by) => open(VIEW, params, { by })} />` : null}
    <button class="primary" onClick=${() => open(VIEW, params, { create: "1", task: null })}>New task</button>
  </div>`;
}

function fits(task, params) {
  const q = (params.get("q") ?? "").toLowerCase();
  const said = [task.title, task.holder, task.question, task.created_by, task.task].join("\n").toLowerCase();
  return ["role", "workspace"].every((name) => !params.get(name) || task[name] === params.get(name)) && said.includes(q);
}

export default function Tasks({ params }) {
  const { data, error, reload } = useFetch(`/v1/tasks?limit=${LIMIT}`, { on: ["handoff."], every: 15 });
  const id = params.get("task");
  const tasks = data?.tasks ?? [];
  const shown = tasks.filter((task) => fits(task, params));
  const isByRole = params.get("by") === "role";
  const close = () => open(VIEW, params, { task: null, create: null });
  const created = (task) => {
    reload();
    location.hash = hashOf(VIEW, changed(params, { task: task.task, create: null }));
  };
  return html`<main data-view="tasks">
    <h1 hidden>Tasks</h1>
    <${ErrorNote} error=${error} />
    ${data ? html`<${Filters} tasks=${tasks} params=${params} />` : null}
    ${params.get("create") ? html`<${Create} onDone=${created} onCancel=${close} workspace=${params.get("workspace")} role=${params.get("role")} />` : null}
    ${id ? html`<${Task} key=${id} id=${id} onClose=${close} onChange=${reload} />` : null}
    ${data && !tasks.length && !params.get("create") ? html`<${Panel} title="Tasks"><${Empty} title="There is no task yet. Create one here or in a terminal; whoever has its role takes it up:" command="herdr task create 'Sum the cart once' --role coder" /><//>` : null}
    ${tasks.length ? html`<div class="board">${columnsOf(shown, isByRole).map((column) => html`<${Column} key=${column.title} ...${column} params=${params} isByRole=${isByRole} />`)}</div>` : null}
  </main>`;
}
