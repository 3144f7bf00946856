// The overview: numbers of the server, alerts, and charts.

import { alerts, thresholds } from "./alerts.js";
import { Chart } from "./chart.js";
import { h, replace, setText } from "./dom.js";
import { bytes, date, duration, number, percent, plural, rate, visible } from "./format.js";
import { kDay, kGap, MinuteHistory } from "./minutes.js";
import { onMoments, withMoment } from "./moments.js";
import { setQuery, tubeLink } from "./router.js";
import { store } from "./store.js";

const kMinute = 60_000;
const kRanges = {
  "5m": { label: "5 min", length: 5 * kMinute, step: 1000 },
  "15m": { label: "15 min", length: 15 * kMinute, step: 2000 },
  "1h": { label: "1 h", length: 60 * kMinute, step: 5000 },
  day: { label: "24 h", length: kDay, step: kMinute, gap: kGap },
  all: { label: "All", length: 24 * 60 * kMinute, step: 60_000 },
};
const kMostAlerts = 8;
const kMostAlertsAtAll = 300;

const kTiles = [
  ["puts", "Puts", "a second"], ["reserves", "Reserves", "a second"],
  ["deletes", "Deletes", "a second"], ["timeouts", "Timeouts", "a second"],
  ["ready", "Ready", ""], ["reserved", "Reserved", ""], ["delayed", "Delayed", ""],
  ["buried", "Buried", ""], ["memory", "Job memory", ""], ["journal", "Journal", ""],
  ["connections", "Connections", ""], ["oldest", "Oldest ready", ""],
];

function tile([key, label, unit]) {
  const value = h("dd", { "data-value": key, class: "tile-value" }, "–");
  const note = h("dd", { class: "tile-note" }, unit);
  const meter = ["memory", "journal"].includes(key)
    ? h("meter", { min: "0", max: "1", low: "0.8", high: "0.95", optimum: "0", hidden: true,
      "aria-label": `${label}: part of its limit in use` }) : null;
  const element = h("div", { class: `tile tile-${key}`, "data-tile": key },
    h("dt", null, label), value, note, meter && h("dd", null, meter));
  return { element, value, note, meter };
}

function thresholdsElement() {
  const list = h("dl");
  return h("details", { class: "thresholds", ontoggle: () => {
    if (!list.firstChild) {
      replace(list, thresholds().map(([name, text]) => [h("dt", null, name), h("dd", null, text)]));
    }
  } }, h("summary", null, "What is listed here"), list);
}

// The links to the first tubes of an alert about many.
function nameTubes(box, tubes) {
  const key = JSON.stringify(tubes);
  if (box.dataset.tubes === key) return;
  box.dataset.tubes = key;
  box.className = "alert-tubes";
  box.hidden = tubes.length === 0;
  replace(box, tubes.length > 0 && "The largest: ", tubes.map(({ name, link }, i) => [i > 0 && ", ",
    h("a", { href: link }, visible(name))]));
}

export class OverviewView {
  title = "Overview";
  live = true;

  constructor() {
    this.tiles = Object.fromEntries(kTiles.map((each) => [each[0], tile(each)]));
    this.alertList = h("ul", { class: "alerts", "data-alerts": "" });
    this.moreAlerts = h("button", { type: "button", hidden: true, "data-action": "more-alerts",
      onclick: () => this.#toggleAlerts() });
    this.charts = this.#charts();
    this.tiles.oldest.value.classList.add("time");
    this.offMoments = onMoments(() => this.tick());
    this.rangeButtons = Object.entries(kRanges).map(([key, { label }]) => h("button", {
      type: "button", "data-range": key, onclick: () => setQuery({ range: key }) }, label));
    this.element = h("div", { class: "overview" },
      h("section", { class: "panel", "aria-labelledby": "alerts-title" },
        h("h2", { id: "alerts-title" }, "Attention"), this.alertList, this.moreAlerts,
        thresholdsElement()),
      h("section", { "aria-label": "Numbers" },
        h("dl", { class: "tiles" }, Object.values(this.tiles).map(({ element }) => element))),
      h("section", { "aria-labelledby": "charts-title" },
        h("div", { class: "section-head" }, h("h2", { id: "charts-title" }, "History"),
          h("div", { class: "tabs small", role: "group", "aria-label": "Length of the charts" },
            this.rangeButtons)),
        h("div", { class: "charts" }, this.charts.map(({ element }) => element))));
  }

  #charts() {
    const line = (key, label, color) => ({ key, label, color });
    return [
      new Chart({ name: "rates", title: "Jobs a second", format: rate, series: [
        line("puts", "puts", "--ready"), line("reserves", "reserves", "--delayed"),
        line("deletes", "deletes", "--reserved"), line("timeouts", "timeouts", "--buried")] }),
      new Chart({ name: "ready", title: "Ready jobs", format: number, whole: true,
        series: [line("ready", "ready", "--ready")] }),
      new Chart({ name: "states", title: "Other jobs", format: number, whole: true, series: [
        line("reserved", "reserved", "--reserved"), line("delayed", "delayed", "--delayed"),
        line("buried", "buried", "--buried")] }),
      new Chart({ name: "connections", title: "Connections", format: number, whole: true, series: [
        line("connections", "all", "--ready"), line("workers", "workers", "--reserved"),
        line("waiting", "waiting", "--delayed")] }),
      new Chart({ name: "memory", title: "Memory for jobs", format: bytes, binary: true,
        series: [line("memory", "in use", "--ready")] }),
      new Chart({ name: "journal", title: "Journal", format: bytes, binary: true, series: [
        line("journal", "files", "--ready"), line("journalLive", "jobs alone", "--reserved")] }),
    ];
  }

  route({ query }) {
    this.range = kRanges[query.range] ? query.range : "5m";
    for (const button of this.rangeButtons) {
      button.setAttribute("aria-pressed", String(button.dataset.range === this.range));
    }
    this.#loadDay(this.range === "day");
    this.chartsAt = 0;
    this.tick();
  }

  // The history of the day is loaded only while it is shown.
  #loadDay(shown) {
    if (shown === Boolean(this.day)) return;
    this.day?.stop();
    this.day = shown ? new MinuteHistory(undefined, () => this.refresh()) : null;
  }

  tick() {
    if (!store.server) return;
    this.#showNumbers(store.server);
    if (this.shownTicks === store.ticks && this.chartsAt) return;
    this.shownTicks = store.ticks;
    this.#showAlerts();
    this.#showCharts();
  }

  #set(key, value, note) {
    setText(this.tiles[key].value, value);
    if (note !== undefined) setText(this.tiles[key].note, note);
  }

  #showNumbers(server) {
    const rates = store.rates ?? {};
    for (const key of ["puts", "reserves", "deletes", "timeouts"]) this.#set(key, rate(rates[key]));
    for (const state of ["ready", "reserved", "delayed", "buried"]) {
      this.#set(state, number(server[`current-jobs-${state}`]));
    }
    setText(this.tiles.ready.note, `${number(server["current-jobs-urgent"])} urgent`);
    setText(this.tiles.delayed.note, `${number(server["current-jobs-held"] ?? 0)} held`);
    this.#usage("memory", server["job-memory"], server["max-job-memory"]);
    this.#usage("journal", server["journal-bytes"], server["journal-max-bytes"]);
    this.#set("connections", number(server["current-connections"]),
      `${plural(server["current-workers"], "worker")}, ${number(server["current-waiting"])} wait`);
    this.#oldest(server["oldest-ready"]);
  }

  #usage(key, used, most) {
    const none = key === "journal" && used === 0;
    this.#set(key, none ? "none" : bytes(used),
      none ? "jobs are in memory only"
        : most > 0 ? `${percent(used, most)} of ${bytes(most)}` : "no limit");
    this.tiles[key].meter.hidden = !(most > 0);
    this.tiles[key].meter.value = most > 0 ? used / most : 0;
  }

  #oldest(oldest) {
    const put = oldest ? store.now() - oldest.age * 1000 : null;
    this.#set("oldest", oldest ? withMoment(duration(oldest.age), put) : "–");
    this.tiles.oldest.value.title = oldest ? `Put ${date(put)}` : "";
    const note = this.tiles.oldest.note;
    const name = oldest?.tube ?? "";
    if (note.dataset.tube === name) return;
    note.dataset.tube = name;
    replace(note, name && h("a", { href: tubeLink(name) }, visible(name)));
  }

  #toggleAlerts() {
    this.allAlerts = !this.allAlerts;
    this.#showAlerts();
  }

  #showAlerts() {
    const { list } = alerts;
    const shown = list.slice(0, this.allAlerts ? kMostAlertsAtAll : kMostAlerts);
    this.#fillAlerts(shown);
    this.moreAlerts.hidden = list.length <= kMostAlerts;
    const hidden = number(list.length - shown.length);
    setText(this.moreAlerts, this.allAlerts ? "Show fewer" : `Show more (${hidden})`);
  }

  // Changes texts in place: a link keeps the focus while the numbers change.
  #fillAlerts(list) {
    const items = this.alertList.children;
    if (list.length === 0) {
      if (!this.alertList.querySelector(".calm")) {
        replace(this.alertList, h("li", { class: "calm" }, "Nothing needs attention."));
      }
      return;
    }
    this.alertList.querySelector(".calm")?.remove();
    while (items.length > list.length) items[items.length - 1].remove();
    list.forEach((alert, i) => {
      if (!items[i]) this.alertList.append(h("li", null, h("a"), h("span")));
      const item = items[i];
      if (item.className !== `alert alert-${alert.level}`) {
        item.className = `alert alert-${alert.level}`;
      }
      item.dataset.alert = alert.key;
      const anchor = item.firstChild;
      const target = alert.link();
      if (anchor.getAttribute("href") !== target) anchor.href = target;
      setText(anchor, alert.text());
      nameTubes(item.lastChild, alert.tubes ?? []);
    });
  }

  // Draws each chart in a task of its own, to keep each task short.
  #showCharts() {
    const { length, step, gap } = kRanges[this.range];
    const now = store.server.time;
    if (now - this.chartsAt < step - 500) return;
    this.chartsAt = now;
    const samples = this.day ? this.day.samples ?? [] : store.samples.last(length, step);
    if (samples.length === 0) return;
    const first = Math.min(samples[0].time, now - 60_000);
    const window = [Math.max(now - length, this.range === "all" ? first : 0), now];
    this.charts.forEach((chart, i) => {
      setTimeout(() => chart.destroyed || chart.update(samples, gap ?? Math.max(15_000, 3 * step),
        window), i * 30);
    });
  }

  refresh() {
    this.chartsAt = 0;
    this.tick();
  }

  leave() {
    this.#loadDay(false);
    this.offMoments();
    this.charts.forEach((chart) => chart.destroy());
  }
}
