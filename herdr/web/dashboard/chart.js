// Lines over time, drawn by uPlot, which is loaded with the first of them.
import { html, useEffect, useRef } from "./kit.js";

let loading = null;

function load() {
  loading ??= import("./vendor/uplot.js").then((module) => {
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = "/dashboard/vendor/uplot.css";
    document.head.append(sheet);
    return module.default;
  });
  return loading;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const nameOf = (line, place) => line.color ?? ["--accent", "--p1", "--p0", "--ok"][place % 4];
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en", { hour12: false });
const round = (value) => (value === null || value === undefined ? "–" : (Math.round(value * 10) / 10).toLocaleString("en"));

function options(width, height, series, unit) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const short = (_, values) => values.map((v) => (v >= 1e6 ? `${v / 1e6}M` : v >= 1e3 ? `${v / 1e3}k` : v) + (unit ? ` ${unit}` : ""));
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: false },
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 1, 1) * 1.1] } },
    axes: [{ ...axis, space: 90, size: 28, values: (_, times) => times.map(clock) }, { ...axis, size: 46, values: short }],
    series: [
      {},
      ...series.map((line, place) => ({ label: line.label, stroke: colour(nameOf(line, place)), width: 1.6, points: { show: false } })),
    ],
  };
}

export function Chart({ title, times, series, height = 150, unit = "" }) {
  const place = useRef();
  const plot = useRef(null);
  const data = [times, ...series.map((line) => line.values)];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    const build = (uPlot) => {
      plot.current?.destroy();
      plot.current = new uPlot(options(place.current.clientWidth || 300, height, series, unit), latest.current, place.current);
    };
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: place.current.clientWidth, height }));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    load().then((uPlot) => {
      if (gone) return;
      build(uPlot);
      resize.observe(place.current);
      place.current.rebuild = () => build(uPlot);
    });
    const again = () => place.current?.rebuild?.();
    dark.addEventListener("change", again);
    addEventListener("herdr-theme", again);
    return () => {
      gone = true;
      resize.disconnect();
      dark.removeEventListener("change", again);
      removeEventListener("herdr-theme", again);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(data));
  const newest = series.map((line) => `${line.label} ${round(line.values.at(-1))}${unit ? ` ${unit}` : ""}`);
  return html`<figure class="chart" aria-label=${`${title}: ${newest.join(", ")}`}>
    <figcaption>${title}<span class="legend">${series.map((line, place) => html`<span key=${line.label}>
      <i style=${{ background: `var(${nameOf(line, place)})` }}></i>${newest[place]}</span>`)}</span></figcaption>
    <div ref=${place}></div>
  </figure>`;
}
