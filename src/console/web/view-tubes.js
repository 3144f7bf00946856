// All tubes in one table, live: search, sort, pins, and the actions of a row.

import { h, iconButton, setText } from "./dom.js";
import { openDialog } from "./dialog.js";
import { duration, number, plural, rate, visible } from "./format.js";
import { isPinned, togglePin } from "./pins.js";
import { actionButton } from "./rights.js";
import { go, setQuery, tubeLink } from "./router.js";
import { drawSpark } from "./sparkline.js";
import { store } from "./store.js";
import { VirtualTable, sortSelect, zeroTone } from "./table.js";
import { clearTube, kickTube, moveTube, pauseTube, resumeTube } from "./tube-actions.js";

const kSortEveryMs = 900;

function numberColumn(key, title, priority, width = 84) {
  return { key, title, width, priority, numeric: true, text: (tube) => number(tube[key]),
    tone: key === "buried" ? (tube) => (tube.buried > 0 ? "alarm" : "zero") : zeroTone(key),
    sort: (tube) => tube[key], csv: (tube) => tube[key] };
}

function rateColumn(key, title, csvName, priority) {
  return { key: csvName, title, width: 92, priority, numeric: true,
    text: (tube) => rate(roundRate(tube[key])),
    tone: (tube) => (tube[key] < 0.05 ? "zero" : ""), sort: (tube) => roundRate(tube[key]),
    csv: (tube) => roundRate(tube[key]) };
}

const roundRate = (value) => (value < 0.05 ? 0 : Math.round(value * 10) / 10);

export class TubesView {
  title = "Tubes";
  live = true;

  constructor() {
    this.search = h("input", { type: "search", placeholder: "Search tubes", "data-search": "",
      "aria-label": "Search tubes", autocomplete: "off", spellcheck: "false",
      oninput: () => setQuery({ q: this.search.value }) });
    this.count = h("span", { class: "muted", "data-count": "", role: "status" });
    this.table = new VirtualTable({ name: "tubes", label: "Tubes", columns: this.#columns(),
      onSort: (sort, order) => setQuery({ sort, order }),
      onOpen: (tube) => go(tubeLink(tube.name)),
      rowClass: (tube) => (isPinned(tube.name) ? "pinned" : ""),
      empty: "Waiting for the server." });
    this.sorting = sortSelect(this.table);
    const toolbar = h("div", { class: "toolbar" }, this.search, this.sorting.element, this.count,
      h("span", { class: "spring" }),
      h("button", { type: "button", "data-action": "csv",
        onclick: () => this.table.exportCsv("tubes") }, "CSV"));
    this.table.below(toolbar);
    this.element = h("div", { class: "view-table" }, toolbar, this.table.element);
    this.sortedAt = 0;
  }

  #columns() {
    return [
      { key: "pin", title: "Pinned", hideTitle: true, width: 34, priority: 3, class: "pin",
        render: (td, tube) => this.#renderPin(td, tube) },
      { key: "name", title: "Name", width: 116, priority: 0, grow: 420, class: "name",
        room: { priority: 4.5, width: 100 },
        render: (td, tube) => this.#renderName(td, tube), sort: (tube) => tube.name,
        csv: (tube) => tube.name },
      { key: "spark", title: "Last minute", width: 100, priority: 6, class: "spark-cell",
        render: (td, tube) => drawSpark(td, tube, store.ticks) },
      numberColumn("ready", "Ready", 1, 76),
      numberColumn("urgent", "Urgent", 13),
      numberColumn("reserved", "Reserved", 4),
      numberColumn("delayed", "Delayed", 5),
      numberColumn("buried", "Buried", 2, 74),
      numberColumn("held", "Held", 14, 70),
      rateColumn("putRate", "Puts/s", "puts-per-second", 7),
      rateColumn("deleteRate", "Deletes/s", "deletes-per-second", 8),
      numberColumn("waiting", "Waiting", 9),
      numberColumn("watching", "Watching", 10, 90),
      numberColumn("using", "Using", 15, 70),
      numberColumn("timeouts", "Timeouts", 12, 90),
      numberColumn("total", "Total", 16, 100),
      { key: "pause-left", title: "Pause", width: 104, priority: 11, numeric: true,
        text: (tube) => (tube["pause-left"] > 0 ? duration(tube["pause-left"]) : ""),
        sort: (tube) => tube["pause-left"], csv: (tube) => tube["pause-left"] },
      { key: "menu", title: "Actions", hideTitle: true, width: 38, priority: 2.5, class: "menu",
        render: (td, tube) => this.#renderMenu(td, tube) },
    ];
  }

  #renderPin(td, tube) {
    if (!td.firstChild) {
      td.append(iconButton("pin", "Pin", { tabindex: "-1", "data-action": "pin",
        onclick: () => this.#pin(td.tube) }));
    }
    td.tube = tube;
    const pinned = isPinned(tube.name);
    const button = td.firstChild;
    if (button.getAttribute("aria-pressed") !== String(pinned)) {
      button.setAttribute("aria-pressed", String(pinned));
    }
  }

  #renderName(td, tube) {
    if (!td.firstChild) td.append(h("a", { tabindex: "-1" }));
    if (td.tubeName !== tube.name) {
      td.tubeName = tube.name;
      td.firstChild.href = tubeLink(tube.name);
      td.firstChild.textContent = visible(tube.name);
      td.firstChild.title = visible(tube.name);
    }
    const paused = tube["pause-left"] > 0;
    if (paused !== Boolean(td.lastChild.dataset?.paused)) {
      if (paused) td.append(h("span", { class: "chip chip-paused", "data-paused": "1" }, "paused"));
      else td.lastChild.remove();
    }
  }

  #renderMenu(td, tube) {
    if (!td.firstChild) {
      td.append(iconButton("menu", "Actions", { tabindex: "-1", "data-action": "row-menu",
        "aria-haspopup": "dialog", onclick: () => this.#menu(td.tube) }));
    }
    td.tube = tube;
  }

  #pin(tube) {
    togglePin(tube.name);
    this.#show(false);
  }

  #menu(tube) {
    const run = (action) => () => {
      dialog.close();
      action(tube.name);
    };
    const paused = tube["pause-left"] > 0;
    const dialog = openDialog({ title: visible(tube.name), name: "row-menu",
      content: h("div", { class: "dialog-body menu-list" },
        h("button", { type: "button", "data-action": "open", onclick: run(() =>
          go(tubeLink(tube.name))) }, "Open"),
        h("button", { type: "button", "data-action": "pin", onclick: run(() => this.#pin(tube)) },
          isPinned(tube.name) ? "Unpin" : "Pin"),
        paused ? actionButton("admin", "Resume", { "data-action": "resume",
          onclick: run(resumeTube) })
          : actionButton("admin", "Pause…", { "data-action": "pause", onclick: run(pauseTube) }),
        actionButton("admin", "Kick…", { "data-action": "kick", onclick: run(kickTube) }),
        actionButton("admin", "Move jobs…", { "data-action": "move", onclick: run(moveTube) }),
        actionButton("admin", "Clear…", { "data-action": "clear", class: "danger",
          onclick: run(clearTube) })) });
  }

  route({ query }) {
    this.query = query.q ?? "";
    if (this.search.value !== this.query) this.search.value = this.query;
    const columns = this.table.columns;
    const column = columns.find((each) => each.key === query.sort && each.sort);
    this.table.setSort(column?.key ?? "name", query.order === "desc" ? "desc" : "asc");
    this.sorting.set(this.table.sortKey, this.table.order);
    this.#show(false);
  }

  tick() {
    if (performance.now() - this.sortedAt >= kSortEveryMs) this.#show(this.table.busy);
    else this.table.render();
  }

  #show(keepOrder) {
    this.sortedAt = performance.now();
    const wanted = this.query.toLowerCase();
    const found = [];
    for (const tube of store.tubes.values()) {
      if (wanted === "" || tube.name.toLowerCase().includes(wanted)) found.push(tube);
    }
    const sorted = keepOrder ? found : this.table.sorted(found);
    const pinned = sorted.filter((tube) => isPinned(tube.name));
    const rows = pinned.length === 0 ? sorted
      : [...pinned, ...sorted.filter((tube) => !isPinned(tube.name))];
    if (store.loaded) {
      this.table.setEmptyText(wanted ? "No tube has this in its name." : "No tubes.");
    }
    this.table.setRows(rows, { keepOrder });
    setText(this.count, store.loaded ? (wanted ? `${number(rows.length)} of ${plural(
      store.tubes.size, "tube")}` : plural(rows.length, "tube")) : "");
  }

  key(event) {
    const tube = this.table.activeItem;
    if (tube && event.key === "m") this.#menu(tube);
    else if (tube && event.key === "p") this.#pin(tube);
    else return this.table.key(event);
    return true;
  }

  refresh() {
    this.#show(false);
  }

  leave() {
    this.table.destroy();
  }
}
