// Where the boxes and arrows of "who waits for whom" go: who waits stands left of whom they wait for.
// Numbers in, numbers out; nothing here draws.

export const BOX = { width: 136, height: 38, gapX: 48, gapY: 14 };
export const BOXES_MAX = 60; // more fit on no screen; the table has the rest

// The arrows: one for each pair of names, with the reasons of all waits between them
export function arrowsOf({ waiting, waits }) {
  const arrows = new Map();
  const add = (from, to, reason, isDeclared) => {
    const key = JSON.stringify([from, to]);
    const known = arrows.get(key) ?? { key, from, to, reasons: [], isDeclared: true };
    if (reason) known.reasons.push(reason);
    known.isDeclared &&= isDeclared;
    arrows.set(key, known);
  };
  for (const waiter of waiting) for (const blocker of waiter.blockers) add(waiter.owner, blocker, waiter.paths.join(", "), false);
  for (const wait of waits) add(wait.owner, wait.on, wait.purpose, true);
  return [...arrows.values()];
}

// How many waits lie between a name and one that waits for nobody. A ring cannot come about, but would not hang this
function depths(arrows) {
  const after = new Map();
  for (const { from, to } of arrows) after.set(from, [...(after.get(from) ?? []), to]);
  const found = new Map();
  const depth = (name, path) => {
    if (found.has(name)) return found.get(name);
    const next = (after.get(name) ?? []).filter((to) => !path.has(to));
    const deep = next.length ? 1 + Math.max(...next.map((to) => depth(to, new Set([...path, name])))) : 0;
    found.set(name, deep);
    return deep;
  };
  for (const { from, to } of arrows) for (const name of [from, to]) depth(name, new Set());
  return found;
}

// Names beside those that they wait for: each column is ordered by the mean place of its targets
function ordered(names, arrows, rows) {
  const mean = (name) => {
    const places = arrows.filter((arrow) => arrow.from === name && rows.has(arrow.to)).map((arrow) => rows.get(arrow.to));
    return places.length ? places.reduce((a, b) => a + b, 0) / places.length : rows.size;
  };
  const means = new Map(names.map((name) => [name, mean(name)]));
  return [...names].sort((a, b) => means.get(a) - means.get(b) || (a < b ? -1 : 1));
}

export function layOut(allArrows) {
  const deep = depths(allArrows);
  const kept = new Set([...deep.keys()].slice(0, BOXES_MAX));
  const arrows = allArrows.filter(({ from, to }) => kept.has(from) && kept.has(to));
  const columns = [];
  for (const name of kept) (columns[deep.get(name)] ??= []).push(name);
  const most = Math.max(0, ...columns.map((column) => column?.length ?? 0));
  const rows = new Map();
  const boxes = new Map();
  const { width, height, gapX, gapY } = BOX;
  columns.forEach((names, depth) => {
    const shift = ((most - names.length) * (height + gapY)) / 2;
    ordered(names, arrows, rows).forEach((name, row) => {
      rows.set(name, row + (most - names.length) / 2);
      boxes.set(name, { name, x: (columns.length - 1 - depth) * (width + gapX) + 1, y: shift + row * (height + gapY) + 1 });
    });
  });
  return {
    boxes: [...boxes.values()],
    lines: arrows.map((arrow) => ({ ...arrow, path: curve(boxes.get(arrow.from), boxes.get(arrow.to)) })),
    width: columns.length * (width + gapX) - gapX + 2,
    height: most * (height + gapY) - gapY + 2,
    left: deep.size - kept.size,
  };
}

function curve(from, to) {
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x - 5, to.y + BOX.height / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
