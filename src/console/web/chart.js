// A chart of samples over time, drawn by dygraphs. The legend of dygraphs sets style attributes in
// HTML, which the Content-Security-Policy forbids: this file replaces it with a legend of its own.

import { h, setText } from "./dom.js";
import { date, short, zone } from "./format.js";
import { onMoments } from "./moments.js";

const kTime = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const formats = {};   // by zone

let ready;

// Waits for the deferred script. Resolves with the constructor, or null if it could not be loaded.
function loadDygraphs() {
  ready ??= new Promise((resolve) => {
    const script = document.getElementById("dygraphs");
    const done = () => resolve(prepare(globalThis.Dygraph));
    if (globalThis.Dygraph) return done();
    script.addEventListener("load", done);
    script.addEventListener("error", () => resolve(null));
    if (document.readyState === "complete") done();
  });
  return ready;
}

function prepare(Dygraph) {
  if (!Dygraph) return null;
  const unused = new Set([Dygraph.Plugins.Legend, Dygraph.Plugins.RangeSelector,
    Dygraph.Plugins.Annotations, Dygraph.Plugins.ChartLabels]);
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => !unused.has(plugin));
  return Dygraph;
}

function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Chart {
  // series: [{key, label, color}], format(value) for the legend, binary: the axis counts bytes,
  // whole: neither the values nor the axis have fractions
  constructor({ name, title, series, format, binary = false, whole = false }) {
    Object.assign(this, { name, title, series, format, binary });
    this.axisFormat = binary ? format : (value) => (whole && value % 1 !== 0 ? "" : short(value));
    this.area = h("div", { class: "chart-area", role: "img", "aria-label": title });
    this.when = h("span", { class: "chart-when muted" });
    this.values = series.map(() => h("span", { class: "legend-value" }));
    const legend = series.map((each, i) => {
      const line = h("span", { class: "legend-line", "aria-hidden": "true" });
      line.style.background = `var(${each.color})`;
      return h("span", { class: "legend-item" }, line, each.label, " ", this.values[i]);
    });
    this.element = h("figure", { class: "chart panel", "data-chart": name },
      h("figcaption", null, h("h3", null, title), this.when), h("div", { class: "legend" }, legend),
      this.area);
    this.rows = [];
    this.inSight = true;
    this.observer = new IntersectionObserver(([entry]) => {
      this.inSight = entry.isIntersecting;
      if (this.inSight) this.#draw();
    });
    this.observer.observe(this.element);
    this.onTheme = () => this.#recolor();
    addEventListener("themechange", this.onTheme);
    this.offMoments = onMoments(() => this.graph?.updateOptions({ labelsUTC: zone() === "UTC" }));
  }

  destroy() {
    this.observer.disconnect();
    removeEventListener("themechange", this.onTheme);
    this.offMoments();
    this.graph?.destroy();
    this.destroyed = true;
  }

  // Draws these samples; a gap of more than `gap` ms breaks the lines.
  update(samples, gap, window) {
    this.rows = this.#rowsOf(samples, gap);
    this.window = window;
    if (this.inSight) this.#draw();
    if (!this.hovered) this.#legend(this.rows.length - 1);
  }

  #rowsOf(samples, gap) {
    const rows = [];
    let before = 0;
    for (const sample of samples) {
      if (before && sample.time - before > gap) {
        rows.push([new Date(before + 1), ...this.series.map(() => NaN)]);
      }
      rows.push([new Date(sample.time), ...this.series.map(({ key }) => sample[key])]);
      before = sample.time;
    }
    return rows;
  }

  #legend(index) {
    const row = this.rows[index];
    if (!row) return;
    this.series.forEach((each, i) => setText(this.values[i], this.format(row[i + 1])));
    setText(this.when, this.hovered ? date(row[0]) : "");
    if (!this.hovered) this.area.setAttribute("aria-label", this.#summary(row));
  }

  #summary(row) {
    const values = this.series.map((each, i) => `${each.label} ${this.format(row[i + 1])}`);
    return `${this.title}: ${values.join(", ")}`;
  }

  async #draw() {
    if (this.rows.length < 2) return;
    const options = { file: this.rows, dateWindow: this.window };
    if (this.graph) {
      this.graph.updateOptions(options);
      return;
    }
    if (this.creating) return;
    this.creating = true;
    const Dygraph = await loadDygraphs();
    this.creating = false;
    if (this.destroyed || !this.area.isConnected) return;
    if (!Dygraph) {
      this.area.textContent = "The chart library could not be loaded.";
      return;
    }
    this.graph = new Dygraph(this.area, this.rows, this.#options());
  }

  #colors() {
    return { colors: this.series.map(({ color }) => cssColor(color)),
      gridLineColor: cssColor("--line"), axisLineColor: cssColor("--line") };
  }

  #options() {
    return {
      ...this.#colors(),
      labels: ["time", ...this.series.map(({ label }) => label)],
      dateWindow: this.window, includeZero: true, strokeWidth: 1.5, legend: "never",
      highlightCircleSize: 3, axisLabelFontSize: 11, gridLineWidth: 1, rightGap: 8,
      labelsUTC: zone() === "UTC", interactionModel: {}, connectSeparatedPoints: true,
      labelsKMG2: this.binary,
      axes: {
        x: { axisLabelFormatter: (value) => this.#timeLabel(value), pixelsPerLabel: 70 },
        y: { axisLabelFormatter: (value) => (value < 0 ? "" : this.axisFormat(value)),
          axisLabelWidth: 60, pixelsPerLabel: 32 },
      },
      highlightCallback: (event, x, points, row) => {
        this.hovered = true;
        this.#legend(row);
      },
      unhighlightCallback: () => {
        this.hovered = false;
        this.#legend(this.rows.length - 1);
      },
    };
  }

  #timeLabel(value) {
    const [from, to] = this.window;
    const time = { ...kTime, timeZone: zone() === "UTC" ? "UTC" : undefined };
    const { minutes, seconds } = formats[zone()] ??= {
      minutes: new Intl.DateTimeFormat(undefined, time),
      seconds: new Intl.DateTimeFormat(undefined, { ...time, second: "2-digit" }) };
    return (to - from > 10 * 60_000 ? minutes : seconds).format(value);
  }

  #recolor() {
    this.graph?.updateOptions(this.#colors());
  }
}
