// The dialog that opens a tube by part of its name, or a job by its id.

import { h, replace } from "./dom.js";
import { openDialog } from "./dialog.js";
import { number, visible } from "./format.js";
import { go, jobLink, tubeLink } from "./router.js";
import { store } from "./store.js";

const kMost = 12;
const kLabel = "Name of a tube, or id of a job";

function matches(text) {
  const found = [];
  if (/^\d+$/.test(text)) found.push({ label: `Job ${text}`, target: jobLink(text) });
  const wanted = text.toLowerCase();
  const tubes = [];
  for (const tube of store.tubes.values()) {
    if (tube.name.toLowerCase().includes(wanted)) tubes.push(tube);
  }
  tubes.sort((a, b) => Number(b.name === text) - Number(a.name === text)
    || a.name.length - b.name.length || (a.name < b.name ? -1 : 1));
  for (const tube of tubes.slice(0, kMost)) {
    found.push({ label: visible(tube.name), note: `${number(tube.ready)} ready`,
      target: tubeLink(tube.name) });
  }
  return found;
}

export function showGoTo() {
  let found = [];
  let chosen = 0;
  const list = h("ul", { class: "goto-list", role: "listbox", id: "goto-list",
    "aria-label": "Tubes and jobs" });
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "true", "aria-controls": "goto-list", "data-goto": "",
    "aria-label": kLabel, placeholder: kLabel });
  const open = (item) => {
    dialog.close();
    if (item) go(item.target);
  };
  const render = () => {
    replace(list, found.map((item, i) => h("li", { role: "option", id: `goto-${i}`,
      "aria-selected": String(i === chosen), class: i === chosen ? "active" : "",
      onclick: () => open(item) }, h("span", { class: "name" }, item.label),
    h("span", { class: "muted" }, item.note))));
    if (found.length > 0) input.setAttribute("aria-activedescendant", `goto-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
  };
  input.addEventListener("input", () => {
    found = matches(input.value.trim());
    chosen = 0;
    render();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") open(found[chosen]);
    else if (event.key === "ArrowDown") chosen = Math.min(chosen + 1, found.length - 1);
    else if (event.key === "ArrowUp") chosen = Math.max(chosen - 1, 0);
    else return;
    event.preventDefault();
    render();
  });
  const dialog = openDialog({ title: "Go to", name: "goto",
    content: h("div", { class: "dialog-body" }, input, list) });
  found = matches("");
  render();
  input.focus();
}
