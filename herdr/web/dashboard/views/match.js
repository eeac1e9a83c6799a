// Pure: the filter of the tail. The globs are the gateway's: `*` and `?` within a segment, `**` over segments.

export const FIELDS = ["type", "source", "workspace", "subject", "session", "task", "trace", "priority"];
const SERVED = ["type", "source", "workspace", "session", "priority"]; // by which the log is read; the rest is sifted here
const WILD = /[*?]/;

// One star is remembered at a time, so the longest pattern costs no more than its length times the text's
function fits(pattern, text, isStar, isSame) {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    if (p < pattern.length && isStar(pattern[p])) [star, mark] = [p++, t];
    else if (p < pattern.length && isSame(pattern[p], text[t])) [p, t] = [p + 1, t + 1];
    else if (star >= 0) [p, t] = [star + 1, ++mark];
    else return false;
  }
  while (p < pattern.length && isStar(pattern[p])) p++;
  return p === pattern.length;
}

const inSegment = (pattern, text) => fits(pattern, text, (c) => c === "*", (wanted, c) => wanted === "?" || wanted === c);
const glob = (pattern, text) => fits(pattern.split("/"), text.split("/"), (segment) => segment === "**", inSegment);

// Without a wildcard a part of the text is enough, as people expect of a search
function tester(wanted) {
  const low = wanted.toLowerCase();
  return WILD.test(low) ? (text) => glob(low, text.toLowerCase()) : (text) => text.toLowerCase().includes(low);
}

const written = new WeakMap(); // an event is written out once, not with each key that is typed

function textOf(event) {
  if (!written.has(event)) written.set(event, JSON.stringify(event).toLowerCase());
  return written.get(event);
}

export const isFiltered = (params) => [...FIELDS, "text"].some((name) => params.get(name));

export function fitting(events, params) {
  const tests = FIELDS.filter((name) => params.get(name)).map((name) => [name, tester(params.get(name))]);
  const text = params.get("text")?.toLowerCase();
  return events.filter(
    (event) => tests.every(([name, test]) => test(String(event[name] ?? ""))) && (!text || textOf(event).includes(text)),
  );
}

// The same as a query of the log, as far as that has it
export function asQuery(params) {
  const wanted = SERVED.filter((name) => params.get(name)).map((name) => [name, params.get(name)]);
  return Object.fromEntries(wanted.map(([name, value]) => [name, WILD.test(value) || name === "priority" ? value : `**/*${value}*/**`]));
}
