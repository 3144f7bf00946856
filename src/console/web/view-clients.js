// The connections of clients: all pages in one table, refreshed every few seconds.

import { ApiError, detailOf, get } from "./api.js";
import { h, setText } from "./dom.js";
import { date, duration, number, plural, visible } from "./format.js";
import { momentsShown, onMoments, withMoment } from "./moments.js";
import { Poller } from "./poller.js";
import { setQuery } from "./router.js";
import { store } from "./store.js";
import { VirtualTable, sortSelect, zeroTone } from "./table.js";

const kEveryMs = 5000;
const kPage = 1000;

function text(key, title, priority, width, grow, shown = (value) => String(value)) {
  const value = (client) => shown(client[key] ?? "", client);
  return { key, title, priority, width, grow, class: "clip",
    text: (client) => visible(value(client)),
    hint: (client) => visible(value(client)) || null, sort: value, csv: value };
}

const sentAt = (client) => store.now() - client.idle * 1000;

const columns = () => [
  { key: "id", title: "Id", width: 80, priority: 1, numeric: true, text: (client) =>
    String(client.id), sort: (client) => client.id, csv: (client) => client.id },
  text("address", "Address", 0, 150, 260, (address, client) =>
    client["tls-name"] ? `${address} (${client["tls-name"]})` : String(address)),
  text("role", "Role", 5, 100),
  text("used", "Uses", 4, 130),
  text("watched", "Watches", 3.5, 200, 1400, (names) => String(names).replaceAll(",", ", ")),
  { key: "waiting", title: "Waits", width: 76, priority: 6,
    text: (client) => (client.waiting ? "yes" : "no"),
    hint: (client) => (client.waiting ? "Waits in a reserve" : null),
    sort: (client) => Number(client.waiting), csv: (client) => Number(client.waiting) },
  { key: "held", title: "Held jobs", width: 92, priority: 2, numeric: true,
    text: (client) => number(client.held), tone: zeroTone("held"), sort: (client) => client.held,
    csv: (client) => client.held },
  { key: "idle", title: "Idle", width: momentsShown() ? 216 : 108, priority: 3, numeric: true,
    time: true, text: (client) => withMoment(duration(client.idle), sentAt(client)),
    hint: (client) => `Last sent something ${date(sentAt(client))}`,
    sort: (client) => client.idle, csv: (client) => client.idle },
];

export class ClientsView {
  title = "Clients";

  constructor() {
    this.clients = [];
    this.search = h("input", { type: "search", placeholder: "Search clients", "data-search": "",
      "aria-label": "Search clients", autocomplete: "off", spellcheck: "false",
      oninput: () => setQuery({ q: this.search.value }) });
    this.count = h("span", { class: "muted", "data-count": "", role: "status" });
    this.auto = h("input", { type: "checkbox", checked: true, "data-action": "auto" });
    this.table = new VirtualTable({ name: "clients", label: "Clients", columns: columns(),
      keyOf: (client) => client.id, onSort: (sort, order) => setQuery({ sort, order }),
      empty: "Loading." });
    this.sorting = sortSelect(this.table);
    const toolbar = h("div", { class: "toolbar" }, this.search, this.sorting.element, this.count,
      h("span", { class: "spring" }),
      h("label", { class: "check-label", title: "Load the list again every 5 seconds" },
        this.auto, "Auto"),
      h("button", { type: "button", "data-action": "csv",
        onclick: () => this.table.exportCsv("clients") }, "CSV"));
    this.table.below(toolbar);
    this.element = h("div", { class: "view-table" }, toolbar, this.table.element);
    this.offMoments = onMoments(() => this.table.setColumns(columns()));
    this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
  }

  async #load(signal) {
    if (this.loaded && !this.auto.checked && !this.mustLoad) return;
    this.mustLoad = false;
    try {
      const clients = [];
      let from = 0;
      do {
        const page = await get("/clients", { from, limit: kPage }, signal);
        clients.push(...page.clients);
        from = page.next;
      } while (from !== 0);
      this.clients = clients;
      this.loaded = true;
      this.table.setEmptyText("No clients.");
    } catch (error) {
      if (signal.aborted || (this.loaded && !(error instanceof ApiError))) return;
      this.clients = [];
      this.table.setEmptyText(detailOf(error));
    }
    this.#show(this.table.busy);
  }

  route({ query }) {
    this.query = query.q ?? "";
    if (this.search.value !== this.query) this.search.value = this.query;
    this.table.setSort(query.sort ?? "id", query.order === "desc" ? "desc" : "asc");
    this.sorting.set(this.table.sortKey, this.table.order);
    this.#show(false);
  }

  #show(keepOrder) {
    const wanted = this.query.toLowerCase();
    const matches = (client) => [client.id, client.address, client.role, client.used,
      client.watched, client["tls-name"]].some((value) => String(value ?? "").toLowerCase().includes(wanted));
    const found = wanted === "" ? this.clients : this.clients.filter(matches);
    this.table.setRows(keepOrder ? found : this.table.sorted(found), { keepOrder });
    setText(this.count, !this.loaded ? "" : wanted ? `${number(found.length)} of ${plural(
      this.clients.length, "client")}` : plural(found.length, "client"));
  }

  key(event) {
    return this.table.key(event);
  }

  refresh() {
    this.mustLoad = true;
    this.poller.now();
  }

  leave() {
    this.poller.stop();
    this.offMoments();
    this.table.destroy();
  }
}
