// The policy of a tube: each key with its value, the origin of the value, and a button to change
// it.

import { del, detailOf, get, path, put } from "./api.js";
import { askForm, confirmAction } from "./dialog.js";
import { h, replace } from "./dom.js";
import { visible } from "./format.js";
import { refusal } from "./rights.js";
import { toast } from "./toast.js";

const kMeaning = {
  "max-attempts": "After this number of reservations, a job that comes back is dead. 0: never.",
  "max-timeouts": "The same after this number of timeouts.",
  "max-releases": "The same after this number of releases.",
  dead: "Where a dead job goes: bury, delete or the name of a tube.",
  backoff: "The delay of a job that comes back: seconds[:most seconds[:factor]].",
  ttl: "A job expires this many seconds after its put, if it is ready or delayed. 0: never.",
  expired: "Where an expired job goes: bury, delete or the name of a tube.",
  "max-jobs": "The tube takes no job while it has this many. 0: any number.",
  "max-reserved": "The tube gives no job while clients hold this many. 0: any number.",
  rate: "The tube gives at most this many jobs in this time: count/seconds. 0: any number.",
  "min-ttr": "A shorter TTR of a put is raised to this many seconds.",
  "default-ttr": "The TTR in seconds of a put that has 0. 0: 1 second.",
  keep: "1: the tube stays when it is empty, with its statistics.",
};
const kOrigin = { wire: "set here or by a command", file: "the settings file", default: "default" };

export class PolicyPanel {
  constructor(name) {
    this.name = name;
    this.body = h("tbody");
    this.notice = h("p", { class: "notice", hidden: true });
    this.table = h("table", { class: "plain stacked", "aria-label": `Policy of ${visible(name)}`,
      "data-table": "policy" },
    h("thead", null, h("tr", null, ["Key", "Value", "Origin", "Meaning", "Change"].map((title) =>
      h("th", { scope: "col" }, title)))), this.body);
    this.element = h("div", { class: "panel" }, this.notice, this.table);
    this.#load();
  }

  async #load() {
    const reason = refusal("inspect");
    try {
      this.#show(await get(path`/tubes/${this.name}/policy`));
    } catch (error) {
      this.notice.textContent = reason || detailOf(error);
      this.notice.hidden = false;
      this.table.hidden = true;
    }
  }

  #show(policy) {
    const keys = Object.keys(policy).filter((key) => !key.endsWith("-from"));
    replace(this.body, keys.map((key) => this.#row(key, policy[key], policy[`${key}-from`])));
  }

  #row(key, value, origin) {
    const reason = refusal("admin");
    const button = (label, action, onclick) => h("button", { type: "button",
      "data-action": action, "aria-label": `${label} ${key}`, disabled: reason !== "",
      title: reason || null, onclick }, label);
    return h("tr", { "data-key": key },
      h("th", { scope: "row" }, h("code", null, key)),
      h("td", { "data-label": "Value", class: "value" }, visible(String(value))),
      h("td", { "data-label": "Origin" }, h("span", { class: `chip origin-${origin}` },
        kOrigin[origin] ?? origin)),
      h("td", { "data-label": "Meaning", class: "muted" }, kMeaning[key] ?? ""),
      h("td", { class: "buttons" }, button("Edit", "edit-policy", () => this.#edit(key, value)),
        origin === "wire" && button("Remove", "remove-policy", () => this.#remove(key))));
  }

  #edit(key, value) {
    askForm({ title: `${key} of ${visible(this.name)}`, name: "policy", action: "Set",
      text: kMeaning[key],
      fields: [{ name: "value", label: "Value", required: true,
        value: value === "-" ? "" : String(value) }],
      submit: async (values) => {
        await put(path`/tubes/${this.name}/policy/${key}`, { value: values.value.trim() });
        toast(`${key} is set.`);
        this.#load();
      } });
  }

  #remove(key) {
    confirmAction({ title: `Remove ${key} of ${visible(this.name)}`, name: "remove-policy",
      action: "Remove", text: "The value of the settings file, or the default, is then in force.",
      run: async () => {
        await del(path`/tubes/${this.name}/policy/${key}`);
        toast(`${key} is removed.`);
        this.#load();
      } });
  }

  refresh() {
    this.#load();
  }
}
