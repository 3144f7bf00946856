// The filters of a list of jobs, which the server applies: a text in the body, and the fields that
// the button "Filters" shows. Each is a parameter of the API's list of jobs and of the address of
// the view.

import { h } from "./dom.js";
import { setQuery } from "./router.js";

const kTypingMs = 300;   // the list is requested when no key was pressed for this long
const kFields = [
  ["age_over", "Older than", "1h"], ["age_below", "Younger than", "10m"],
  ["pri_over", "Priority above", "1024"], ["pri_below", "Priority below", "1024"],
  ["failures_over", "Failures above", "2"], ["tag", "Tag", "con:k"]];
const kNames = ["q", ...kFields.map(([name]) => name)];

// The filters in the query of an address. The list of the jobs that are given next has none.
export function filtersIn(query, state) {
  if (state === "next") return {};
  return Object.fromEntries(kNames.filter((name) => query[name]).map((name) => [name, query[name]]));
}

export class FilterBar {
  constructor() {
    this.inputs = {};
    this.search = this.#input("q", { type: "search", placeholder: "Search bodies",
      "aria-label": "Search the bodies of the jobs", "data-search": "", maxlength: "200" });
    this.fields = h("div", { class: "filters", hidden: true, role: "group", "data-filters": "",
      "aria-label": "Filters" }, kFields.map(([name, label, example]) =>
      h("label", { class: "check-label" }, label, this.#input(name, { type: "text",
        name, placeholder: example, class: "filter-field" }))),
    h("button", { type: "button", "data-action": "clear-filters", onclick: () => this.clear() },
      "Clear filters"));
    this.button = h("button", { type: "button", "data-action": "filters", "aria-expanded": "false",
      title: "By age, priority, failures and tag", onclick: () => this.#show(this.fields.hidden) },
    "Filters");
  }

  #input(name, attributes) {
    return (this.inputs[name] = h("input", { autocomplete: "off", spellcheck: "false",
      ...attributes,
      oninput: () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.#apply(), kTypingMs);
      },
      onkeydown: (event) => {
        if (event.key === "Enter") this.#apply();
      } }));
  }

  #apply() {
    this.leave();
    setQuery(Object.fromEntries(kNames.map((name) => [name, this.inputs[name].value])));
  }

  #show(shown) {
    this.fields.hidden = !shown;
    this.button.setAttribute("aria-expanded", String(shown));
  }

  clear() {
    for (const name of kNames) this.inputs[name].value = "";
    this.#apply();
  }

  // Shows the filters of an address, unless the user is typing others.
  route(query, state) {
    const reason = state === "next" ? "The jobs that are given next cannot be searched" : null;
    for (const name of kNames) {
      const input = this.inputs[name];
      input.disabled = reason !== null;
      input.title = reason ?? "";
      if (!this.timer && input.value !== (query[name] ?? "")) input.value = query[name] ?? "";
    }
    if (kFields.some(([name]) => query[name])) this.#show(true);
  }

  leave() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
