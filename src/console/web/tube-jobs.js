// The jobs of a tube in one state: pages, search, filters and order by the server, selection and its
// actions, and the body of the active job next to the table.

import { ApiError, detailOf, get, path } from "./api.js";
import { Bodies } from "./bodies.js";
import { BodyView, snippet } from "./body.js";
import { h, iconButton, replace, setText } from "./dom.js";
import { bytes, date, duration, number, plural, visible } from "./format.js";
import { deleteJobs, kickJobs, moveJobs, reprioritizeJobs } from "./job-actions.js";
import { FilterBar, filtersIn } from "./job-filters.js";
import { momentsShown, onMoments, withMoment } from "./moments.js";
import { keepPlace, takePlace } from "./place.js";
import { Poller } from "./poller.js";
import { actionButton, refusal } from "./rights.js";
import { go, jobLink, setQuery, tubeLink } from "./router.js";
import { load, save } from "./storage.js";
import { store } from "./store.js";
import { VirtualTable, sortSelect, zeroTone } from "./table.js";
import { toastError } from "./toast.js";

const kStates = ["ready", "reserved", "delayed", "buried", "held", "all", "next"];
const kUnsorted = { ready: "by id", next: "as given" };
const kHelp = { next: "The jobs that are given next, in their order." };
const kPage = 100;
const kMostPage = 1000;
const kMostRounds = 50;        // pages may be short or empty; a search stops after so many
const kMostLooked = 10_000;    // a search or an order of more jobs is not repeated by itself
const kMostSorted = 10_000;    // a list that the server has sorted reaches this far
const kRefreshMs = 3000;
const kLargeBody = 65_536;     // larger bodies are read only on request
const kBodiesAtOnce = 3;

function numeric(key, title, priority, width) {
  return { key, title, width, priority, numeric: true, text: (job) => number(job[key]),
    tone: zeroTone(key), sort: (job) => job[key], csv: (job) => job[key] };
}

function timed(key, title, priority, width) {
  return { ...numeric(key, title, priority, width), text: (job) => duration(job[key]) };
}

// `moment(job)`: that of the time, in ms; null: the time means no moment.
function momentColumn(key, title, priority, word, moment) {
  const shown = momentsShown();
  return { ...timed(key, title, priority, shown ? 216 : 108), time: true,
    text: (job) => withMoment(duration(job[key]), moment(job)),
    hint: (job) => (moment(job) === null ? null : `${word} ${date(moment(job))}`) };
}

const putAt = (job) => store.now() - job.age * 1000;
const endsAt = (job) => (job["time-left"] > 0 ? store.now() + job["time-left"] * 1000 : null);

export class JobsPanel {
  constructor(view) {
    this.view = view;
    this.name = view.name;
    this.jobs = [];
    this.next = 0;
    this.pages = 0;              // loaded by #loadMore
    this.looked = 0;             // at this number of jobs, of a search
    this.total = null;           // of a list that the server has sorted
    this.loadedOrder = "";       // by which the rows were requested
    this.bodies = new Bodies();
    this.wantedBodies = [];
    this.reading = 0;
    this.controller = new AbortController();
    this.#build();
    this.offMoments = onMoments(() => this.table.setColumns(this.#columns(this.state)));
  }

  #build() {
    this.states = h("nav", { class: "tabs small states", "aria-label": "State of the jobs" });
    this.stateLinks = Object.fromEntries(kStates.map((state) => [state, h("a", {
      "data-state": state, title: kHelp[state], href: tubeLink(this.name, { state }) }, state)]));
    replace(this.states, Object.values(this.stateLinks));
    this.filterBar = new FilterBar();
    this.search = this.filterBar.search;
    this.count = h("span", { class: "muted", "data-count": "", role: "status" });
    this.table = new VirtualTable({ name: "jobs", label: `Jobs of ${visible(this.name)}`,
      columns: this.#columns("ready"), keyOf: (job) => job.id,
      onSort: (sort, order) => setQuery({ sort, order }), onOpen: (job) => go(jobLink(job.id)),
      covered: () => this.#coveredHeight(), onActive: (job) => this.#preview(job),
      onSelect: () => this.#selectionChanged(), empty: "Loading." });
    this.table.onRendered = (rows) => this.#wantBodies(rows);
    this.sorting = sortSelect(this.table, kUnsorted.ready);
    this.auto = h("input", { type: "checkbox", "data-action": "auto", checked: true });
    this.autoText = h("span", null, "Auto");
    this.previewButton = h("button", { type: "button", "data-action": "preview",
      onclick: () => this.#togglePreview() }, "Preview");
    this.more = h("button", { type: "button", "data-action": "more", hidden: true,
      onclick: () => this.#loadMore(kPage) }, `Load ${kPage} more`);
    this.muchMore = h("button", { type: "button", "data-action": "much-more", hidden: true,
      onclick: () => this.#loadMore(kMostPage) }, `Load ${number(kMostPage)} more`);
    this.bodyView = new BodyView();
    this.bodyTitle = h("h2", null, "Body");
    this.aside = h("aside", { class: "preview panel", "aria-label": "Body of the active job",
      "data-preview": "", hidden: true },
    h("div", { class: "section-head" }, this.bodyTitle,
      iconButton("close", "Close the preview", { onclick: () => this.#togglePreview() })),
    this.bodyView.element);
    this.toolbar = h("div", { class: "toolbar" }, this.search, this.filterBar.button,
      this.sorting.element, this.count, h("span", { class: "spring" }),
      h("label", { class: "check-label", title: "Load the list again every 3 seconds" },
        this.auto, this.autoText),
      this.previewButton,
      h("button", { type: "button", "data-action": "csv", onclick: () =>
        this.table.exportCsv(`jobs-${this.name}-${this.state}`) }, "CSV"),
      this.filterBar.fields, this.#selectionBar());
    this.table.below(this.toolbar);
    this.element = h("div", { class: "jobs" }, this.states, this.toolbar,
      h("div", { class: "jobs-split" }, h("div", { class: "jobs-main" }, this.table.element,
        h("div", { class: "buttons more" }, this.more, this.muchMore)), this.aside));
    this.#showPreview(load("preview", false));
  }

  #selectionBar() {
    const selected = () => [...this.table.selected];
    const changed = () => this.#changed();
    this.selectedCount = h("strong", { "data-selected": "" });
    this.selectionBar = h("div", { class: "selection", hidden: true, role: "group",
      "aria-label": "Actions on the selected jobs" }, this.selectedCount,
    actionButton("admin", "Kick", { "data-action": "kick-selected",
      onclick: () => kickJobs(selected(), changed)
        .catch((error) => toastError(error)) }),
    actionButton("admin", "Move…", { "data-action": "move-selected",
      onclick: () => moveJobs(selected(), changed) }),
    actionButton("admin", "Re-prioritize…", { "data-action": "reprioritize-selected",
      onclick: () => reprioritizeJobs(selected(), changed) }),
    actionButton("work", "Delete…", { "data-action": "delete-selected", class: "danger",
      onclick: () => deleteJobs(selected(), changed) }),
    h("button", { type: "button", "data-action": "select-none",
      onclick: () => this.table.selectAll(false) }, "Select none"));
    return this.selectionBar;
  }

  #columns(state) {
    const several = ["all", "next", "held"].includes(state);
    const timeLeft = ["reserved", "delayed", "all"].includes(state);
    return [
      { key: "id", title: "Id", width: 96, priority: 0, numeric: true, class: "id",
        render: (td, job) => renderId(td, job), sort: (job) => job.id, csv: (job) => job.id },
      several && { key: "state", title: "State", width: 84, priority: 1,
        text: (job) => job.state, sort: (job) => job.state, csv: (job) => job.state },
      numeric("pri", "Pri", 3, 84),
      momentColumn("age", "Age", 2, "Put", putAt),
      timeLeft && momentColumn("time-left", "Time left", 2.5, "Ends", endsAt),
      numeric("reserves", "Reserves", 5, 88),
      numeric("timeouts", "Timeouts", 6, 88),
      numeric("releases", "Releases", 7, 88),
      numeric("buries", "Buries", 8, 76),
      numeric("kicks", "Kicks", 9, 70),
      this.searches && numeric("failures", "Failures", 4.2, 84),
      this.searches && { key: "dead-from", title: "Dead from", width: 130, priority: 13,
        text: (job) => visible(job["dead-from"]), class: "clip",
        sort: (job) => job["dead-from"], csv: (job) => job["dead-from"] },
      timed("ttr", "TTR", 10, 76),
      timed("delay", "Delay", 12, 76),
      numeric("bytes", "Bytes", 4, 80),
      { key: "tags", title: "Tags", width: 130, priority: 11,
        text: (job) => visible(job.tags ?? ""),
        hint: (job) => (job.tags ? visible(job.tags) : null),
        sort: (job) => job.tags ?? "", csv: (job) => job.tags ?? "", class: "clip" },
      { key: "body", title: "Body", width: 140, priority: 0.5, grow: 4000, class: "clip body-cell",
        room: { priority: 4.5, width: 220 },
        text: (job) => this.#snippet(job) },
    ].filter(Boolean);
  }

  #snippet(job) {
    const data = this.bodies.get(job.id);
    if (data) return (job.snippet ??= snippet(data));
    if (job.bytes > kLargeBody) return `(${bytes(job.bytes)})`;
    return job.bodyMissing ?? "…";
  }

  route(query) {
    this.routed = query;
    const state = kStates.includes(query.state) ? query.state : this.#firstState();
    this.filterBar.route(query, state);
    this.table.setSort(query.sort ?? "", query.order === "desc" ? "desc" : "asc");
    const filters = filtersIn(query, state);
    const filterKey = JSON.stringify(filters);
    if (state !== this.state || filterKey !== this.filterKey) {
      Object.assign(this, { filters, filterKey });
      this.#openState(state);
    }
    this.sorting.set(this.table.sortKey, this.table.order);
    this.#show();
    if (this.#mustSort()) this.poller.now();
    if (this.place) this.#restoreScroll();
  }

  // If no job is ready, an operator most often looks for buried jobs.
  #firstState() {
    if (this.state) return this.state;
    const counts = this.view.counts();
    return counts.ready === 0 && counts.buried > 0 ? "buried" : "ready";
  }

  // Some filter is set: the server searches.
  get searches() {
    return Object.keys(this.filters ?? {}).length > 0;
  }

  // The order that the server is asked for. The jobs that are given next come in their own order,
  // and the page sorts them.
  get order() {
    const { columns, sortKey, order } = this.table;
    const isSorted = columns.some((each) => each.key === sortKey && each.sort);
    return isSorted && this.state !== "next" ? { sort: sortKey, order } : {};
  }

  // The loaded rows are not all, and were requested in another order.
  #mustSort() {
    const isAll = this.next === 0 && (this.total ?? 0) <= this.jobs.length;
    return this.loaded && !isAll && JSON.stringify(this.order) !== this.loadedOrder;
  }

  #openState(state) {
    this.state = state;
    for (const [key, anchor] of Object.entries(this.stateLinks)) {
      if (key === state) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
    this.jobs = [];
    this.next = this.looked = 0;
    this.total = null;
    this.loaded = false;
    this.table.selectAll(false);
    this.table.setColumns(this.#columns(state));
    this.table.setEmptyText(this.searches ? "Searching." : "Loading.");
    const sorting = sortSelect(this.table, kUnsorted[state] ?? kUnsorted.ready);
    this.sorting.element.replaceWith(sorting.element);
    this.sorting = sorting;
    this.poller?.stop();
    this.#returnTo(takePlace(this.name, state));
    this.poller = new Poller((signal) => this.#reload(signal), kRefreshMs);
    this.tick();
  }

  // --- the place, for the way back from a job

  #returnTo(place) {
    if (!place || place.filterKey !== this.filterKey) return;
    this.jobs = place.jobs;
    this.next = place.next;
    this.looked = place.looked;
    this.total = place.total;
    this.loadedOrder = place.loadedOrder;
    this.bodies = place.bodies;
    this.auto.checked = this.mustReload = place.auto;
    this.loaded = true;
    this.place = place;
  }

  // The rows are in the table, in their order.
  #restoreScroll() {
    const { place } = this;
    this.place = null;
    this.table.scrollToRow(place.top);
    this.table.activateKey(place.active);
  }

  #keepPlace() {
    if (!this.loaded || this.jobs.length === 0) return;
    keepPlace({ tube: this.name, state: this.state, hash: tubeLink(this.name, this.routed),
      filterKey: this.filterKey, jobs: this.jobs, next: this.next, looked: this.looked, total: this.total,
      loadedOrder: this.loadedOrder, bodies: this.bodies, auto: this.auto.checked,
      top: this.table.rowAtTop(), active: this.table.activeKey, stats: this.view.stats });
  }

  tick() {
    const counts = this.view.counts();
    for (const state of kStates) {
      const count = counts[state];
      setText(this.stateLinks[state], count === undefined ? state : `${state} ${number(count)}`);
    }
  }

  onStats() {
    this.tick();
  }

  // --- pages

  // The next jobs from this id on, or from this row on of a sorted list. `progress(looked)` is called
  // after each page.
  async #page(from, limit, signal, progress) {
    const { order } = this;
    const jobs = [];
    let [next, looked, total] = [from, 0, null];
    const most = kMostRounds + Math.ceil(limit / kMostPage);
    for (let round = 0; round < most && jobs.length < limit; ++round) {
      const answer = await get(path`/tubes/${this.name}/jobs`, { state: this.state, from: next,
        limit: Math.min(kMostPage, limit - jobs.length), ...this.filters, ...order }, signal);
      jobs.push(...answer.jobs);
      total = answer.total ?? null;
      if (total === null) looked += answer.looked ?? answer.jobs.length;
      else looked = answer.looked ?? total;
      next = answer.next;
      if (next === 0) break;
      progress?.(looked);
    }
    return { jobs, next, looked, total, order: JSON.stringify(order) };
  }

  // The list is loaded again by itself while that costs little.
  get isLong() {
    const isWalk = this.searches || this.total !== null;
    return this.jobs.length > kMostPage || (isWalk && this.looked > kMostLooked);
  }

  get isAuto() {
    return this.auto.checked && !this.isLong;
  }

  #showProgress(looked) {
    if (!this.searches) return;
    setText(this.count, `Searching: looked at ${plural(looked, "job")}`);
  }

  async #reload(signal) {
    if (this.loaded && !this.mustReload && !this.isAuto && !this.#mustSort()) return;
    const { mustReload, pages, loaded, loadedOrder } = this;
    this.mustReload = false;
    const limit = Math.max(kPage, this.jobs.length);
    try {
      const { jobs, next, looked, total, order } = await this.#page(0, limit, signal,
        loaded ? null : (count) => this.#showProgress(count));
      if (signal.aborted) return;
      // More rows were loaded in the meantime, or are being loaded, than this answer has.
      if (this.loaded && (this.loadingMore || pages !== this.pages)) {
        this.mustReload ||= mustReload;
        return;
      }
      Object.assign(this, { jobs, next, looked, total, loadedOrder: order, loaded: true });
      this.table.setEmptyText(this.#emptyText());
    } catch (error) {
      if (signal.aborted) return;
      // Without a connection the last list stays; main.js reports the loss.
      if (this.loaded && !(error instanceof ApiError)) return;
      this.loaded = true;
      this.table.setEmptyText(detailOf(error));
      this.jobs = [];
      this.next = this.looked = 0;
      this.total = null;
    }
    const present = new Set(this.jobs.map((job) => job.id));
    this.table.pruneSelection((id) => present.has(id));
    // Rows that are shown in this order keep their places for a user who is active, until the list
    // is loaded again by itself.
    const isSameOrder = loaded && loadedOrder === this.loadedOrder && this.table.sortKey !== "";
    this.#show(isSameOrder && this.isAuto && this.table.busy);
  }

  #emptyText() {
    if (this.searches) {
      return this.next ? "None of the jobs that were looked at matches." : "No job matches.";
    }
    return this.state === "all" ? "The tube has no jobs."
      : this.state === "next" ? "No job can be given now." : `No ${this.state} jobs.`;
  }

  async #loadMore(limit) {
    if (this.loadingMore || this.#mustSort()) return;
    const { state, filterKey, loadedOrder, looked: before } = this;
    this.loadingMore = true;
    this.more.disabled = this.muchMore.disabled = true;
    try {
      const isSame = () => state === this.state && filterKey === this.filterKey
        && loadedOrder === JSON.stringify(this.order);
      const { jobs, next, looked, total } = await this.#page(this.next, limit, this.controller.signal,
        (count) => isSame() && this.#showProgress(before + count));
      if (isSame()) {
        const known = new Set(this.jobs.map((job) => job.id));
        this.jobs = [...this.jobs, ...jobs.filter((job) => !known.has(job.id))];
        this.next = next;
        this.total = total;
        this.looked = total === null ? before + looked : looked;
        this.table.setEmptyText(this.#emptyText());
        this.pages += 1;
      }
    } catch (error) {
      if (!this.controller.signal.aborted) toastError(error);
    }
    this.loadingMore = false;
    this.more.disabled = this.muchMore.disabled = false;
    this.#show();
  }

  #changed() {
    this.table.selectAll(false);
    this.view.refresh();
  }

  refresh() {
    this.mustReload = true;
    this.poller?.now();
  }

  // --- what is shown

  #show(keepOrder = false) {
    const rows = keepOrder ? this.jobs : this.table.sorted(this.jobs);
    this.table.setRows(rows, { keepOrder });
    this.more.hidden = this.muchMore.hidden = this.next === 0;
    const verb = this.searches ? "Find" : "Load";
    setText(this.more, `${verb} ${number(kPage)} more`);
    setText(this.muchMore, `${verb} ${number(kMostPage)} more`);
    this.auto.disabled = this.isLong;
    const bound = this.jobs.length > kMostPage ? `${number(kMostPage)} rows`
      : `${number(kMostLooked)} jobs looked at`;
    setText(this.autoText, this.isLong ? `Auto: off above ${bound}` : "Auto");
    setText(this.count, this.#countText());
  }

  // Returns the number of jobs in the list, the number searched, and whether more exist.
  #countText() {
    if (!this.loaded) return this.searches ? "Searching" : "";
    const count = plural(this.jobs.length, "job");
    const verb = this.searches ? `found among ${number(this.looked)}` : "loaded";
    if (this.#mustSort()) return `${count} ${verb}; sorting all`;
    if (this.total > this.jobs.length) {
      const end = this.next === 0 && this.total > kMostSorted ? ", the most of a sorted list" : "";
      return `${number(this.jobs.length)} of ${plural(this.total, "job")} ${verb}${end}; sorted: all`;
    }
    // Of the jobs that are given next, the server lists only the first.
    const isFirst = this.state === "next" && this.jobs.length >= kPage;
    if (this.next === 0 && !isFirst) return `${count} ${verb}, all`;
    if (this.searches) return `${count} ${verb}; more to search`;
    return `${count} ${verb}${isFirst && this.table.sortKey !== "" ? "; sorted: only loaded" : ""}`;
  }

  // --- bodies

  // Reads the bodies of the visible rows once scrolling has stopped.
  #wantBodies(rows) {
    if (refusal("inspect")) return;
    clearTimeout(this.bodyTimer);
    this.bodyTimer = setTimeout(() => {
      this.wantedBodies = rows.filter((job) => job.bytes <= kLargeBody && !job.bodyMissing
        && !this.bodies.get(job.id));
      while (this.reading < kBodiesAtOnce && this.wantedBodies.length > 0) this.#readNextBody();
    }, 120);
  }

  async #readNextBody() {
    const job = this.wantedBodies.shift();
    if (!job) return;
    this.reading += 1;
    let lost = false;
    try {
      await this.bodies.read(job.id, this.controller.signal);
    } catch (error) {
      lost = !(error instanceof ApiError);
      if (!lost) job.bodyMissing = error.status === 404 ? "(gone)" : "(not read)";
    }
    this.reading -= 1;
    if (this.controller.signal.aborted) return;
    // Without a connection the bodies are requested again with the next list.
    if (lost) this.wantedBodies = [];
    else if (this.wantedBodies.length > 0) this.#readNextBody();
    else if (this.reading === 0) this.table.render();
  }

  #togglePreview() {
    this.#showPreview(this.aside.hidden);
    save("preview", !this.aside.hidden);
  }

  #showPreview(show) {
    this.aside.hidden = !show;
    this.previewButton.setAttribute("aria-pressed", String(show));
    this.element.classList.toggle("with-preview", show);
    this.previewed = undefined;
    this.#preview(this.table.activeItem);
  }

  // On narrow screens the preview covers part of the table.
  #coveredHeight() {
    const over = !this.aside.hidden && getComputedStyle(this.aside).position === "fixed";
    return over ? this.aside.offsetHeight : 0;
  }

  async #preview(job) {
    if (this.aside.hidden) return;
    if (!job) {
      setText(this.bodyTitle, "Body");
      this.bodyView.message("Choose a job.");
      return;
    }
    if (this.previewed === job.id) return;
    this.previewed = job.id;
    setText(this.bodyTitle, `Body of job ${job.id}`);
    try {
      const data = await this.bodies.read(job.id, this.controller.signal);
      if (this.previewed === job.id) this.bodyView.show(job.id, data);
    } catch (error) {
      if (this.previewed === job.id) this.bodyView.message(detailOf(error));
    }
    // The body has changed the height of the preview.
    if (this.previewed === job.id && this.#coveredHeight() > 0) this.table.coveredChanged();
  }

  key(event) {
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      this.table.selectAll(true);
      return true;
    }
    if (event.key === "v") {
      this.#togglePreview();
      return true;
    }
    if (event.key === "Escape" && this.table.selected.size > 0) {
      this.table.selectAll(false);
      return true;
    }
    return this.table.key(event);
  }

  #selectionChanged() {
    const count = this.table.selected.size;
    this.selectionBar.hidden = count === 0;
    setText(this.selectedCount, `${number(count)} selected`);
  }

  leave() {
    this.#keepPlace();
    this.offMoments();
    this.filterBar.leave();
    this.poller?.stop();
    this.controller.abort();
    clearTimeout(this.bodyTimer);
    this.table.destroy();
  }
}

function renderId(td, job) {
  if (!td.firstChild) td.append(h("a", { tabindex: "-1" }));
  const text = String(job.id);
  if (td.firstChild.textContent === text) return;
  td.firstChild.textContent = text;
  td.firstChild.href = jobLink(job.id);
}
