// The times of a tube's jobs as histograms, and all numbers of the tube.

import { detailOf, get, path } from "./api.js";
import { h, replace } from "./dom.js";
import { exact, latency, number, visible } from "./format.js";
import { Poller } from "./poller.js";

const kEveryMs = 5000;
const kKinds = [
  ["queue", "Queue time", "From a job's put to its first reservation, delays included."],
  ["processing", "Processing time", "From a job's last reservation to its delete by its holder."],
];

export class TimesPanel {
  constructor(name) {
    this.name = name;
    this.box = h("div", { class: "times" });
    this.element = h("div", null, this.box);
    this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
  }

  async #load(signal) {
    try {
      const { times } = await get(path`/tubes/${this.name}/times`, null, signal);
      if (!signal.aborted) this.#show(times);
    } catch (error) {
      if (!signal.aborted) replace(this.box, h("p", { class: "notice" }, detailOf(error)));
    }
  }

  onStats(stats) {
    this.stats = stats;
  }

  #show(times) {
    if (times.length === 0) {
      replace(this.box, h("p", { class: "notice" }, "The server measures no times of this tube: "
        + "it has more tubes than http.max_tubes."));
      return;
    }
    replace(this.box, kKinds.map(([key, title, help]) => this.#histogram(times, key, title, help)));
  }

  #histogram(times, key, title, help) {
    const total = times.reduce((sum, bucket) => sum + bucket[key], 0);
    const most = Math.max(1, ...times.map((bucket) => bucket[key]));
    const percentiles = ["p50", "p95", "p99"].map((part) =>
      `${part} ${latency(this.stats?.[`${key}-time-${part}`])}`);
    return h("section", { class: "panel", "data-histogram": key },
      h("h2", null, title), h("p", { class: "muted" }, help),
      h("p", null, `${number(total)} jobs: ${percentiles.join(", ")}`),
      h("table", { class: "plain histogram", "aria-label": `${title} of ${visible(this.name)}` },
        h("thead", null, h("tr", null, h("th", { scope: "col", class: "numeric" }, "Up to"),
          h("th", { scope: "col", class: "numeric" }, "Jobs"),
          h("th", { scope: "col", class: "numeric" }, "Share"), h("td"))),
        h("tbody", null, times.map((bucket) => histogramRow(bucket, bucket[key], most, total)))));
  }

  refresh() {
    this.poller.now();
  }

  leave() {
    this.poller.stop();
  }
}

function histogramRow(bucket, count, most, total) {
  const bar = h("span", { class: "bar" });
  bar.style.width = `${(100 * count) / most}%`;
  const share = total > 0 ? (100 * count) / total : 0;
  return h("tr", null,
    h("th", { scope: "row", class: "numeric" },
      bucket.seconds === "more" ? "more" : latency(bucket.seconds)),
    h("td", { class: "numeric" }, number(count)),
    h("td", { class: "numeric" }, count > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`),
    h("td", { "aria-hidden": "true" }, bar));
}

export class NumbersPanel {
  constructor() {
    this.list = h("dl", { class: "numbers" });
    this.element = h("div", { class: "panel", "data-panel": "numbers" }, this.list);
  }

  onStats(stats) {
    replace(this.list, numberPairs(stats));
  }
}

// All keys and values of an answer, named as in the documentation. Ids have no commas.
export function numberPairs(stats) {
  const shown = (key, value) => (typeof value === "number" && !/(^|-)p?id$/.test(key)
    ? exact(value) : visible(String(value)));
  return Object.entries(stats ?? {}).map(([key, value]) => h("div", { "data-key": key },
    h("dt", null, key), h("dd", null, shown(key, value))));
}
