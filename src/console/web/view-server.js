// The server: its version, drain mode, the settings in force, all numbers, and its capabilities.

import { del, detailOf, get, post } from "./api.js";
import { confirmAction } from "./dialog.js";
import { h, replace, setText } from "./dom.js";
import { date, duration, number, visible } from "./format.js";
import { serverName } from "./identity.js";
import { onMoments, withMoment } from "./moments.js";
import { Poller } from "./poller.js";
import { actionButton, currentAccess, refusal, settingsRefusal } from "./rights.js";
import { setQuery } from "./router.js";
import { store } from "./store.js";
import { toast } from "./toast.js";
import { numberPairs } from "./tube-times.js";

const kEveryMs = 3000;

export class ServerView {
  title = "Server";

  constructor() {
    this.facts = h("dl", { class: "facts" });
    this.drain = actionButton("admin", "Drain…", { "data-action": "drain",
      onclick: () => this.#toggleDrain() });
    this.search = h("input", { type: "search", placeholder: "Search settings and numbers",
      "aria-label": "Search settings and numbers", "data-search": "", autocomplete: "off",
      spellcheck: "false", oninput: () => setQuery({ q: this.search.value }) });
    this.changedOnly = h("input", { type: "checkbox", "data-action": "changed-only",
      onchange: () => setQuery({ changed: this.changedOnly.checked ? "1" : "" }) });
    this.settingsNotice = h("p", { class: "notice", hidden: true });
    this.settingsBody = h("tbody");
    this.settingsTable = h("table", { class: "plain stacked", "aria-label": "Settings in force",
      "data-table": "settings" }, h("thead", null, h("tr", null,
      ["Key", "Value", "Default", "Reload"].map((title) => h("th", { scope: "col" }, title)))),
    this.settingsBody);
    this.numbers = h("dl", { class: "numbers" });
    this.capabilities = h("p", { class: "capabilities" });
    this.notice = h("p", { class: "notice", hidden: true, role: "status" });
    this.element = h("div", { class: "view-server" },
      h("div", { class: "actions", "data-actions": "server" }, this.drain), this.notice, this.facts,
      h("div", { class: "toolbar" }, this.search,
        h("label", { class: "check-label" }, this.changedOnly, "Changed settings only")),
      h("section", { class: "panel", "aria-labelledby": "settings-title" },
        h("h2", { id: "settings-title" }, "Settings in force"), this.settingsNotice,
        this.settingsTable),
      h("section", { class: "panel", "aria-labelledby": "numbers-title" },
        h("h2", { id: "numbers-title" }, "All numbers"), this.numbers),
      h("section", { class: "panel", "aria-labelledby": "capabilities-title" },
        h("h2", { id: "capabilities-title" }, "Capabilities"), this.capabilities));
    this.settings = [];
    this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
    this.offMoments = onMoments(() => this.#show());
    this.#loadOnce();
  }

  async #load(signal) {
    try {
      this.stats = await get("/server", null, signal);
      this.notice.hidden = true;
    } catch (error) {
      if (signal.aborted) return;
      setText(this.notice, detailOf(error));
      this.notice.hidden = false;
    }
    this.#show();
  }

  async #loadOnce() {
    try {
      ({ settings: this.settings } = await get("/settings"));
    } catch (error) {
      setText(this.settingsNotice, settingsRefusal() || detailOf(error));
      this.settingsNotice.hidden = false;
      this.settingsTable.hidden = true;
    }
    this.#showSettings();
    try {
      setText(this.capabilities, (await get("/capabilities")).map(visible).join("  "));
    } catch (error) {
      setText(this.capabilities, refusal("inspect") || detailOf(error));
    }
  }

  route({ query }) {
    this.query = (query.q ?? "").toLowerCase();
    if (this.search.value.toLowerCase() !== this.query) this.search.value = query.q ?? "";
    this.changedOnly.checked = query.changed === "1";
    this.#showSettings();
    this.#show();
  }

  get #draining() {
    return [true, "true"].includes(this.stats?.draining);
  }

  #show() {
    const { stats } = this;
    if (!stats) return;
    const access = currentAccess();
    const started = store.now() - stats.uptime * 1000;
    const facts = [["Server", serverName()], ["Version", visible(stats.version)],
      ["Host", visible(stats.hostname)],
      ["Up for", withMoment(duration(stats.uptime), started), `Since ${date(started)}`, "time"],
      ["Process", String(stats.pid)],
      ["Processor time", duration(Number(stats["rusage-utime"]) + Number(stats["rusage-stime"]))],
      ["Puts", this.#draining ? "refused: draining" : "accepted"], ["HTTP API", access.api],
      ["Your role", access.role ? `${visible(access.role)}: ${(access.verbs ?? []).join(", ")}`
        : "none: everything is allowed"]];
    if (access.tubes) facts.push(["Your tubes", access.tubes.map(visible).join(", ")]);
    replace(this.facts, facts.map(([label, value, title, kind]) => h("div", { class: "fact" },
      h("dt", null, label), h("dd", { title, class: kind }, value))));
    setText(this.drain, this.#draining ? "End drain mode…" : "Drain…");
    this.drain.dataset.action = this.#draining ? "undrain" : "drain";
    this.#showNumbers();
  }

  #showNumbers() {
    const shown = Object.entries(this.stats).filter(([key]) => key.includes(this.query));
    replace(this.numbers, shown.length > 0 ? numberPairs(Object.fromEntries(shown))
      : h("p", { class: "muted" }, "No number has this in its name."));
  }

  #showSettings() {
    const shown = this.settings.filter(({ key, value, changed }) =>
      (changed || !this.changedOnly.checked)
      && (key.includes(this.query) || String(value).toLowerCase().includes(this.query)));
    replace(this.settingsBody, shown.map(({ key, value, default: usual, changed, reloadable }) =>
      h("tr", { "data-key": key, class: changed ? "changed" : "" },
        h("th", { scope: "row" }, h("code", null, visible(key)),
          changed && h("span", { class: "chip chip-changed" }, "changed")),
        h("td", { "data-label": "Value", class: "value" }, settingText(value)),
        h("td", { "data-label": "Default", class: "muted" }, settingText(usual)),
        h("td", { "data-label": "Reload", class: "muted" },
          reloadable ? "yes" : "needs a restart"))));
  }

  #toggleDrain() {
    const draining = this.#draining;
    confirmDrain(draining, this.settings, async () => {
      await (draining ? del("/drain") : post("/drain"));
      toast(draining ? "The server takes new jobs again." : "The server is draining.");
      this.refresh();
    });
  }

  refresh() {
    this.poller.now();
  }

  leave() {
    this.offMoments();
    this.poller.stop();
  }
}

// The effect of drain mode with these settings, as text.
function drainText(settings) {
  // Values are written as in a TOML file.
  const value = (key) => settings.find((row) => row.key === key)?.value.replaceAll("\"", "");
  const exit = value("drain.exit");
  const refused = "Every put is refused with DRAINING until drain mode ends.";
  if (exit === undefined) {
    return `${refused} drain.exit decides whether workers get jobs, and whether the server exits.`;
  }
  const work = exit === "when-idle" && value("drain.reserves") === "refuse"
    ? "Workers finish the jobs that they hold, and get no others."
    : "Workers still get the jobs that are here.";
  if (exit === "never") return `${refused} ${work} The server does not exit.`;
  const end = exit === "when-idle" ? "no job is reserved" : "no job is left";
  const limit = value("drain.timeout").startsWith("0") ? ""
    : ", or after drain.timeout, which interrupts workers that hold jobs";
  return `${refused} ${work} The server exits once ${end}${limit}.`;
}

function confirmDrain(draining, settings, run) {
  confirmAction(draining
    ? { title: "End drain mode", action: "Accept puts again", danger: false, name: "undrain",
      text: "The server takes new jobs again.", run }
    : { title: "Drain the server", action: "Refuse new jobs", name: "drain",
      text: drainText(settings), run });
}

function settingText(value) {
  if (value === "" || value === null || value === undefined) return "(empty)";
  if (Array.isArray(value)) return value.length > 0 ? value.map(visible).join(", ") : "(empty)";
  return typeof value === "number" ? number(value) : visible(String(value));
}
