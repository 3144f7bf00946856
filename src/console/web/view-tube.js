// One tube: its numbers, its actions, and tabs for jobs, a put, the policy and the times.

import { ApiError, detailOf, get, path } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { date, duration, kNone, latency, number, rate, visible } from "./format.js";
import { isPinned, togglePin } from "./pins.js";
import { onMoments, withMoment } from "./moments.js";
import { statsIn } from "./place.js";
import { Poller } from "./poller.js";
import { actionButton } from "./rights.js";
import { link, tubeLink } from "./router.js";
import { store } from "./store.js";
import { clearTube, kickTube, moveTube, pauseTube, reserveNext, resumeTube }
  from "./tube-actions.js";
import { HistoryPanel } from "./tube-history.js";
import { JobsPanel } from "./tube-jobs.js";
import { PolicyPanel } from "./tube-policy.js";
import { PutPanel } from "./tube-put.js";
import { NumbersPanel, TimesPanel } from "./tube-times.js";

const kEveryMs = 3000;
const kTabs = { jobs: "Jobs", put: "Put a job", policy: "Policy", times: "Times",
  history: "History", numbers: "Numbers" };

export class TubeView {
  live = true;

  constructor([, name]) {
    this.name = name;
    this.title = visible(name);
    this.crumbs = [["Tubes", link(["tubes"])]];
    this.stats = statsIn(name);   // as high as they were
    this.notice = h("p", { class: "notice", hidden: true, role: "status" });
    this.facts = h("dl", { class: "facts", "aria-label": "Numbers of the tube" });
    this.values = {};
    this.tabs = h("nav", { class: "tabs", "aria-label": "Parts of the tube" });
    this.panelBox = h("div", { class: "tube-panel" });
    this.element = h("div", { class: "view-tube" }, this.#actions(), this.notice, this.facts,
      this.tabs, this.panelBox);
    this.#buildFacts();
    if (this.stats) this.#showFacts();
    this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
    this.offMoments = onMoments(() => this.#showFacts());
  }

  #actions() {
    const { name } = this;
    const refresh = () => this.refresh();
    this.pause = actionButton("admin", "Pause…", { "data-action": "pause",
      onclick: () => (this.paused ? resumeTube : pauseTube)(name, refresh) });
    this.pin = h("button", { type: "button", "data-action": "pin", onclick: () => this.#pin() });
    this.#labelPin();
    return h("div", { class: "actions", "data-actions": "tube" }, this.pin, this.pause,
      actionButton("admin", "Kick…", { "data-action": "kick",
        onclick: () => kickTube(name, refresh) }),
      actionButton("work", "Reserve next", { "data-action": "reserve-next",
        onclick: () => reserveNext(name) }),
      actionButton("admin", "Move jobs…", { "data-action": "move",
        onclick: () => moveTube(name, refresh) }),
      actionButton("admin", "Clear…", { "data-action": "clear", class: "danger",
        onclick: () => clearTube(name, refresh) }));
  }

  #pin() {
    togglePin(this.name);
    this.#labelPin();
  }

  #labelPin() {
    setText(this.pin, isPinned(this.name) ? "Unpin" : "Pin");
  }

  #buildFacts() {
    for (const [key, label] of [["rates", "Puts / deletes a second"], ["total", "Jobs put"],
      ["clients", "Watching / waiting / using"], ["timeouts", "Timeouts"],
      ["oldest", "Oldest ready / buried"], ["queue", "Queue time p50 / p95 / p99"],
      ["processing", "Processing time p50 / p95 / p99"], ["pause", "Pause"]]) {
      this.values[key] = h("dd", { "data-value": key,
        class: ["oldest", "pause"].includes(key) ? "time" : null }, kNone);
      this.facts.append(h("div", { class: `fact fact-${key}` }, h("dt", null, label),
        this.values[key]));
    }
  }

  async #load(signal) {
    try {
      this.stats = await get(path`/tubes/${this.name}`, null, signal);
      this.notice.hidden = true;
    } catch (error) {
      if (signal.aborted || (this.stats && !(error instanceof ApiError))) return;
      this.stats = null;
      const missing = error instanceof ApiError && error.status === 404;
      setText(this.notice, missing ? "This tube does not exist now. A put creates it."
        : detailOf(error));
      this.notice.hidden = false;
    }
    this.#showFacts();
    this.panel?.onStats?.(this.stats);
  }

  // The tube's row of the stream, which is newer than its stats and has the same names.
  get row() {
    return store.tubes.get(this.name);
  }

  tick() {
    this.#showFacts();
    this.panel?.tick?.();
  }

  #showFacts() {
    const { row, stats } = this;
    const set = (key, text) => setText(this.values[key], text);
    const of = (column, key) => row?.[column] ?? stats?.[key];
    set("rates", row ? `${rate(Math.max(0, row.putRate))} / ${rate(Math.max(0, row.deleteRate))}`
      : kNone);
    set("total", number(of("total", "total-jobs")));
    set("clients", [of("watching", "current-watching"), of("waiting", "current-waiting"),
      of("using", "current-using")].map(number).join(" / "));
    set("timeouts", number(of("timeouts", "total-timeouts")));
    const age = (state) => (stats[`current-jobs-${state}`] ? this.#age(stats[`oldest-${state}-age`])
      : kNone);
    set("oldest", stats ? `${age("ready")} / ${age("buried")}` : kNone);
    for (const kind of ["queue", "processing"]) {
      set(kind, stats ? ["p50", "p95", "p99"].map((part) =>
        latency(stats[`${kind}-time-${part}`])).join(" / ") : kNone);
    }
    this.values.oldest.title = stats ? `Put ${date(store.now()
      - 1000 * Math.max(stats["oldest-ready-age"], stats["oldest-buried-age"]))}` : "";
    const left = of("pause-left", "pause-time-left") ?? 0;
    const end = store.now() + left * 1000;
    this.values.pause.title = left > 0 ? `Ends ${date(end)}` : "";
    this.paused = left > 0;
    set("pause", this.paused ? withMoment(`${duration(left)} left`, end) : "not paused");
    this.values.pause.parentNode.classList.toggle("attention", this.paused);
    setText(this.pause, this.paused ? "Resume" : "Pause…");
    this.pause.dataset.action = this.paused ? "resume" : "pause";
  }

  #age(seconds) {
    return withMoment(duration(seconds), store.now() - seconds * 1000);
  }

  counts() {
    const { row, stats } = this;
    return Object.fromEntries(["ready", "reserved", "delayed", "buried", "held"].map((state) =>
      [state, row?.[state] ?? stats?.[`current-jobs-${state}`]]));
  }

  route({ query }) {
    const tab = kTabs[query.view] ? query.view : "jobs";
    if (tab !== this.tab) this.#openTab(tab);
    this.panel.route?.(query);
  }

  #openTab(tab) {
    this.tab = tab;
    this.panel?.leave?.();
    this.panel = this.#newPanel(tab);
    replace(this.tabs, Object.entries(kTabs).map(([key, label]) => h("a", {
      href: tubeLink(this.name, { view: key === "jobs" ? "" : key }), "data-tab": key,
      "aria-current": key === tab ? "page" : null }, label)));
    replace(this.panelBox, this.panel.element);
    this.panel.onStats?.(this.stats);
  }

  #newPanel(tab) {
    if (tab === "put") return new PutPanel(this.name, () => this.refresh());
    if (tab === "policy") return new PolicyPanel(this.name);
    if (tab === "times") return new TimesPanel(this.name);
    if (tab === "history") return new HistoryPanel(this.name);
    if (tab === "numbers") return new NumbersPanel();
    return new JobsPanel(this);
  }

  get search() {
    return this.panel?.search;
  }

  key(event) {
    return this.panel?.key?.(event) ?? false;
  }

  up() {
    return link(["tubes"]);
  }

  refresh() {
    this.poller.now();
    this.panel?.refresh?.();
  }

  leave() {
    this.poller.stop();
    this.offMoments();
    this.panel?.leave?.();
  }
}
