// One job: all lines of stats-job, its body and its actions. A job that is reserved here can be
// touched, released, buried and deleted until its TTR expires.

import { ApiError, del, detailOf, get, jobBody, path, post } from "./api.js";
import { BodyView } from "./body.js";
import { copyButton } from "./copy.js";
import { setCrumbs } from "./crumbs.js";
import { askForm, openDialog } from "./dialog.js";
import { h, replace, setText } from "./dom.js";
import { bytes, date, duration, number, visible } from "./format.js";
import { dropHold, extendHold, hold, holdOf } from "./holds.js";
import { deleteJobs, forceDeleteJob, kickJobs, moveJobs, reprioritizeJobs } from "./job-actions.js";
import { onMoments, withMoment } from "./moments.js";
import { placeIn } from "./place.js";
import { Poller } from "./poller.js";
import { actionButton } from "./rights.js";
import { go, link, tubeLink } from "./router.js";
import { store } from "./store.js";
import { toast, toastError } from "./toast.js";
import { draftFromJob, kMostEdited } from "./tube-put.js";
import { numberPairs } from "./tube-times.js";

const kEveryMs = 2000;
const kMostBody = 4 * 2 ** 20;   // larger bodies are read only on request

const kTimes = ["age", "time-left"];
const kShown = { pri: number, delay: duration, ttr: duration, "idempotency-ttl": duration,
  ttl: duration };

export class JobView {
  constructor([, id]) {
    this.id = id;
    this.title = `Job ${visible(id)}`;
    this.crumbs = [["Tubes", link(["tubes"])]];
    this.notice = h("p", { class: "notice", hidden: true, role: "status" });
    this.actions = h("div", { class: "actions", "data-actions": "job" });
    this.held = h("section", { class: "panel held", hidden: true, "data-held": "",
      "aria-label": "This page holds the job" });
    this.facts = h("dl", { class: "numbers" });
    this.bodyView = new BodyView();
    this.bodyView.message("Loading.");
    this.element = h("div", { class: "view-job" }, this.actions, this.notice, this.held,
      h("div", { class: "job-split" },
        h("section", { class: "panel", "aria-labelledby": "job-facts" },
          h("h2", { id: "job-facts" }, "Job"), this.facts),
        h("section", { class: "panel", "aria-labelledby": "job-body" },
          h("h2", { id: "job-body" }, "Body"), this.bodyView.element)));
    this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
    this.clock = setInterval(() => this.#showHeld(), 500);
    this.offMoments = onMoments(() => this.#show());
  }

  async #load(signal) {
    try {
      this.stats = await get(path`/jobs/${this.id}`, null, signal);
      const { tube } = this.stats;
      setCrumbs([...this.crumbs, [visible(tube), placeIn(tube) || tubeLink(tube)]]);
      this.notice.hidden = true;
      if (!this.bodyRead) this.#readBody(signal);
    } catch (error) {
      if (signal.aborted) return;
      const gone = error instanceof ApiError && error.status === 404;
      setText(this.notice, gone ? this.stats ? "This job no longer exists: it was deleted, or it "
        + "expired." : "There is no such job." : detailOf(error));
      this.notice.hidden = false;
      if (gone) {
        dropHold(this.id);
        this.gone = true;
        if (!this.bodyRead) this.bodyView.message("");
        this.poller.stop();
      }
    }
    this.#show();
  }

  async #readBody(signal, most = kMostBody) {
    this.bodyRead = true;
    try {
      const { data, size } = await jobBody(this.id, signal, most);
      if (data) {
        this.bodyView.show(this.id, data);
      } else {
        this.bodyView.message(`The body has ${bytes(size)}. `, h("button", { type: "button",
          "data-action": "load-body", onclick: () => this.#readBody(signal, Infinity) }, "Load"));
      }
    } catch (error) {
      if (!signal.aborted) this.bodyView.message(detailOf(error));
    }
  }

  #show() {
    const { stats } = this;
    if (stats) this.#showFacts(stats);
    this.#showActions();
    this.#showHeld();
  }

  // Values are changed in place: a button among them keeps the focus.
  #showFacts(stats) {
    const entries = Object.entries(stats);
    const keys = entries.map(([key]) => key).join();
    if (this.shownKeys !== keys) {
      this.shownKeys = keys;
      this.shown = {};
      replace(this.facts, entries.map(([key]) => h("div", { "data-key": key },
        h("dt", null, key), this.shown[key] = h("dd"))));
    }
    for (const [key, value] of entries) this.#showValue(this.shown[key], key, value);
  }

  #showValue(dd, key, value) {
    if (kTimes.includes(key)) {
      const moment = this.#momentOf(key, value);
      dd.className = "time";
      dd.title = moment === null ? number(value)
        : `${key === "age" ? "Put" : "Ends"} ${date(moment)}`;
      setText(dd, withMoment(duration(value), moment));
      return;
    }
    if (dd.dataset.value === String(value)) return;
    dd.dataset.value = value;
    replace(dd, this.#content(key, value));
    if (kShown[key]) dd.title = number(value);
  }

  #content(key, value) {
    if (key === "id") {
      return [String(value), " ", copyButton("the id", "copy-id", () => String(value))];
    }
    if (key === "tube" || key === "dead-from") {
      return h("a", { href: tubeLink(value) }, visible(value));
    }
    if (key === "group" || key === "after-group") {
      return h("button", { type: "button", "data-action": "show-group",
        onclick: () => showGroup(value) }, visible(value));
    }
    if (key === "state") return h("span", { class: `chip state-${value}` }, value);
    if (typeof value !== "number") return visible(String(value));
    return (kShown[key] ?? number)(value);
  }

  // In ms; null: the time means no moment.
  #momentOf(key, value) {
    if (key === "age") return store.now() - value * 1000;
    return value > 0 ? store.now() + value * 1000 : null;
  }

  #showActions() {
    const state = this.gone ? "gone" : this.stats?.state;
    const key = `${state} ${Boolean(holdOf(this.id))}`;
    if (this.actionsFor === key) return;
    this.actionsFor = key;
    const ids = [this.id];
    const refresh = () => this.refresh();
    const kick = ["buried", "delayed"].includes(state) && actionButton("admin", "Kick",
      { "data-action": "kick", class: "primary",
        onclick: () => kickJobs(ids, refresh).catch((error) => toastError(error)) });
    const elsewhere = state === "reserved" && !holdOf(this.id);
    const free = ["ready", "delayed", "buried"].includes(state);
    replace(this.actions, kick,
      free && actionButton("work", "Reserve", { "data-action": "reserve",
        title: "Hold the job here, as a worker does", onclick: () => this.#reserve() }),
      free && actionButton("admin", "Re-prioritize…", { "data-action": "reprioritize",
        onclick: () => reprioritizeJobs(ids, refresh, this.stats.pri) }),
      free && actionButton("admin", "Move…", { "data-action": "move",
        onclick: () => moveJobs(ids, refresh) }),
      this.stats && actionButton("produce", "Edit and put again…", { "data-action": "put-again",
        title: "Fill the form of a put from this job, which stays as it is",
        onclick: () => this.#putAgain() }),
      free && actionButton("work", "Delete…", { "data-action": "delete", class: "danger",
        onclick: () => deleteJobs(ids, refresh) }),
      elsewhere && actionButton("admin", "Delete by force…", { "data-action": "delete-force",
        class: "danger", onclick: () => forceDeleteJob(this.id, refresh) }));
  }

  async #putAgain() {
    try {
      const known = this.bodyView.id === this.id ? this.bodyView.data : null;
      const data = known ?? (await jobBody(this.id, undefined, kMostEdited)).data;
      draftFromJob(this.stats, data);
      go(tubeLink(this.stats.tube, { view: "put" }));
    } catch (error) {
      toastError(error, this.title);
    }
  }

  // --- the reservation

  async #reserve() {
    try {
      hold(await post(path`/jobs/${this.id}/reserve`));
      toast(`Job ${this.id} is held by this page.`);
    } catch (error) {
      toastError(error, this.title);
    }
    this.refresh();
  }

  #showHeld() {
    const held = holdOf(this.id);
    if (!held) {
      if (!this.held.hidden) {
        this.held.hidden = true;
        this.refresh();
      }
      return;
    }
    if (this.held.hidden || this.heldToken !== held.token) this.#buildHeld(held);
    const left = Math.max(0, Math.ceil((held.until - Date.now()) / 1000));
    setText(this.countdown, withMoment(duration(left), held.until));
    this.countdown.title = `Ends ${date(held.until)}`;
    this.bar.value = left;
    this.held.classList.toggle("attention", left <= 5);
  }

  #buildHeld({ token }) {
    this.heldToken = token;
    this.held.hidden = false;
    this.countdown = h("strong", { "data-value": "ttr-left", role: "timer", class: "time" });
    this.bar = h("progress", { max: String(this.stats?.ttr || 60), "aria-label": "TTR left" });
    const button = (label, action, onclick, kind) => h("button", { type: "button", class: kind,
      "data-action": action, onclick }, label);
    replace(this.held, h("h2", null, "Held by this page"),
      h("p", null, "The job becomes ready again in ", this.countdown, "."), this.bar,
      h("div", { class: "buttons" },
        button("Touch", "touch", () => this.#touch(token)),
        button("Release…", "release", () => this.#release(token)),
        button("Bury", "bury", () => this.#end("buried", () =>
          post(path`/reservations/${token}/bury`, {}))),
        button("Delete", "delete-held", () => this.#end("deleted", () =>
          del(path`/reservations/${token}`)), "danger")));
  }

  async #touch(token) {
    try {
      await post(path`/reservations/${token}/touch`, {});
      const { "time-left": left } = await get(path`/reservations/${token}`);
      extendHold(this.id, left);
      this.#showHeld();
    } catch (error) {
      this.#heldError(error);
    }
  }

  #release(token) {
    askForm({ title: `Release ${this.title.toLowerCase()}`, name: "release", action: "Release",
      fields: [
        { name: "pri", label: "Priority", type: "number", min: "0", max: "4294967295",
          value: String(this.stats?.pri ?? 1024), required: true },
        { name: "delay", label: "Delay in seconds", type: "number", min: "0", max: "4294967295",
          value: "0", required: true }],
      submit: async ({ pri, delay }) => {
        await post(path`/reservations/${token}/release`,
          { pri: Number(pri), delay: Number(delay) });
        this.#ended("released");
      } });
  }

  async #end(done, request) {
    try {
      await request();
      this.#ended(done);
    } catch (error) {
      this.#heldError(error);
    }
  }

  #ended(done) {
    dropHold(this.id);
    this.held.hidden = true;
    toast(`Job ${this.id}: ${done}.`);
    this.refresh();
  }

  #heldError(error) {
    toastError(error, this.title);
    if (error instanceof ApiError && [404, 409].includes(error.status)) dropHold(this.id);
    this.refresh();
  }

  up() {
    if (!this.stats) return link(["tubes"]);
    return placeIn(this.stats.tube) || tubeLink(this.stats.tube);
  }

  refresh() {
    this.poller.now();
  }

  leave() {
    this.poller.stop();
    clearInterval(this.clock);
    this.offMoments();
  }
}

async function showGroup(group) {
  try {
    const stats = await get(path`/groups/${group}`);
    openDialog({ title: `Group ${visible(group)}`, name: "group",
      content: h("div", { class: "dialog-body" }, h("dl", { class: "numbers" },
        numberPairs(stats))) });
  } catch (error) {
    toastError(error, `Group ${visible(group)}`);
  }
}
