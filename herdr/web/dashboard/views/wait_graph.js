// Where the boxes and arrows of "who waits for whom" go: who waits stands left of whom they wait for.
// Numbers in, numbers out; nothing here draws.

export const BOX = { width: 164, height: 38, gapX: 42, gapY: 14 };
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
function ordered(stops, next, rows) {
  const mean = (stop) => {
    const places = (next.get(stop) ?? []).filter((to) => rows.has(to)).map((to) => rows.get(to));
    return places.length ? places.reduce((a, b) => a + b, 0) / places.length : rows.size;
  };
  const means = new Map(stops.map((stop) => [stop, mean(stop)]));
  return [...stops].sort((a, b) => means.get(a) - means.get(b) || (a < b ? -1 : 1));
}

// An arrow over more than one column gets a stop in each between them, so that it goes around the boxes there
function chainsOf(arrows, deep) {
  return arrows.map((arrow) => {
    const between = [];
    for (let depth = deep.get(arrow.from) - 1; depth > deep.get(arrow.to); depth--) between.push([`${arrow.key} ${depth}`, depth]);
    return { ...arrow, between };
  });
}

function columnsOf(names, chains, deep) {
  const columns = [];
  const add = (stop, depth) => (columns[depth] ??= []).push(stop);
  for (const name of names) add(name, deep.get(name));
  for (const { between } of chains) for (const [stop, depth] of between) add(stop, depth);
  return columns;
}

function nextOf(chains) {
  const next = new Map();
  for (const { from, between, to } of chains) {
    const stops = [from, ...between.map(([stop]) => stop), to];
    stops.slice(1).forEach((stop, place) => next.set(stops[place], [...(next.get(stops[place]) ?? []), stop]));
  }
  return next;
}

export function layOut(allArrows) {
  const deep = depths(allArrows);
  const names = new Set([...deep.keys()].slice(0, BOXES_MAX));
  const chains = chainsOf(allArrows.filter(({ from, to }) => names.has(from) && names.has(to)), deep);
  const columns = columnsOf(names, chains, deep);
  const next = nextOf(chains);
  const { width, height, gapX, gapY } = BOX;
  const tall = (stop) => (names.has(stop) ? height : 0) + gapY;
  const heights = columns.map((stops) => stops.reduce((sum, stop) => sum + tall(stop), 0));
  const most = Math.max(0, ...heights);
  const rows = new Map();
  const places = new Map();
  columns.forEach((stops, depth) => {
    let y = (most - heights[depth]) / 2 + 1;
    for (const stop of ordered(stops, next, rows)) {
      rows.set(stop, y + tall(stop) / 2);
      places.set(stop, { name: stop, x: (columns.length - 1 - depth) * (width + gapX) + 1, y });
      y += tall(stop);
    }
  });
  return {
    boxes: [...names].map((name) => places.get(name)),
    lines: chains.map((chain) => ({ ...chain, path: curve(chain, places) })),
    width: columns.length * (width + gapX) - gapX + 2,
    height: most - gapY + 2,
    left: deep.size - names.size,
  };
}

function curve({ from, between, to }, places) {
  const { width, height, gapX } = BOX;
  const middle = (place) => place.y + height / 2;
  let [x, y] = [places.get(from).x + width, middle(places.get(from))];
  let path = `M${x} ${y}`;
  const bend = (toX, toY) => {
    path += `C${x + gapX / 2} ${y} ${toX - gapX / 2} ${toY} ${toX} ${toY}`;
    [x, y] = [toX, toY];
  };
  for (const [stop] of between) {
    const place = places.get(stop);
    bend(place.x, place.y);
    path += `H${(x = place.x + width)}`;
  }
  bend(places.get(to).x - 4, middle(places.get(to)));
  return path;
}
