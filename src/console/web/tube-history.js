// The charts of a tube over the last hour or day.

import { Chart } from "./chart.js";
import { h, setText } from "./dom.js";
import { number, rate } from "./format.js";
import { kDay, kGap, kHour, MinuteHistory } from "./minutes.js";
import { setQuery } from "./router.js";
import { store } from "./store.js";

const kRanges = { "1h": { label: "1 h", length: kHour }, day: { label: "24 h", length: kDay } };

export class HistoryPanel {
  constructor(name) {
    const line = (key, color) => ({ key, label: key, color });
    this.charts = [
      new Chart({ name: "tube-rates", title: "Jobs a second", format: rate, series: [
        line("puts", "--ready"), line("reserves", "--delayed"), line("deletes", "--reserved"),
        line("timeouts", "--buried")] }),
      new Chart({ name: "tube-ready", title: "Ready jobs", format: number, whole: true,
        series: [line("ready", "--ready")] }),
      new Chart({ name: "tube-states", title: "Other jobs", format: number, whole: true, series: [
        line("reserved", "--reserved"), line("delayed", "--delayed"),
        line("buried", "--buried")] }),
    ];
    this.notice = h("p", { class: "notice", hidden: true, role: "status" });
    this.buttons = Object.entries(kRanges).map(([key, { label }]) => h("button", {
      type: "button", "data-range": key, onclick: () => setQuery({ range: key }) }, label));
    this.element = h("section", { "aria-label": "History" },
      h("div", { class: "section-head" },
        h("div", { class: "tabs small", role: "group", "aria-label": "Length of the charts" },
          this.buttons)),
      this.notice, h("div", { class: "charts" }, this.charts.map(({ element }) => element)));
    this.history = new MinuteHistory(name, () => this.#show());
  }

  route({ range }) {
    this.range = kRanges[range] ? range : "1h";
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.range === this.range));
    }
    this.#show();
  }

  #show() {
    const { samples, problem } = this.history;
    const none = samples?.length === 0;
    setText(this.notice, problem || (none
      ? "No history yet. The server keeps the history of its 50 busiest tubes." : ""));
    this.notice.hidden = this.notice.textContent === "";
    if (!samples || none) return;
    const { length } = kRanges[this.range];
    const now = Math.max(store.server ? store.now() : 0, samples.at(-1).time);
    const shown = samples.filter(({ time }) => time >= now - length);
    for (const chart of this.charts) chart.update(shown, kGap, [now - length, now]);
  }

  refresh() {
    this.history.poller.now();
  }

  leave() {
    this.history.stop();
    for (const chart of this.charts) chart.destroy();
  }
}
