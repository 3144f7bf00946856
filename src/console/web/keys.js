// Keyboard shortcuts. A key pressed in a field belongs to the field, except Esc, which leaves it.

import { h } from "./dom.js";
import { openDialog } from "./dialog.js";

const kSequenceMs = 1500;

export const kShortcuts = [
  ["Go to", [["g o", "Overview"], ["g t", "Tubes"], ["g c", "Clients"], ["g s", "Server"],
    ["g n", "Nodes of the cluster"], ["g g", "A tube by name, or a job by id"],
    ["Backspace", "Up: from a job to its tube"]]],
  ["Tables", [["j  k  ↓  ↑", "Move the active row"], ["Enter", "Open it"],
    ["x", "Select it (jobs)"], ["Shift ↓  Shift ↑", "Select a range (jobs)"],
    ["Ctrl a", "Select all that is loaded (jobs)"], ["m", "Actions of the row (tubes)"],
    ["p", "Pin the tube"], ["v", "Show the body beside the table (jobs)"]]],
  ["Everywhere", [["/", "Search"], ["r", "Refresh"],
    ["t", "Show times with their moments, or without"], ["u", "Times in UTC, or local"],
    ["Esc", "Close, or leave the field"],
    ["?", "This list"]]],
];

export function showShortcuts() {
  openDialog({ title: "Keyboard shortcuts", name: "shortcuts", wide: true,
    content: h("div", { class: "dialog-body shortcuts" }, kShortcuts.map(([title, keys]) =>
      h("section", null, h("h3", null, title), h("dl", null, keys.map(([key, text]) =>
        [h("dt", null, h("kbd", null, key)), h("dd", null, text)]))))) });
}

function inField(target) {
  return target.matches?.("input:not([type=checkbox]), textarea, select");
}

// bindings: {"g o": run, "?": run, ...}; `rest(event)` gets every other key and returns true if it
// has used it.
export function installKeys(bindings, rest) {
  let first = "";
  let firstAt = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (inField(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (modified && !(event.key === "a" && (event.ctrlKey || event.metaKey))) return;
    const isSecond = first && event.timeStamp - firstAt < kSequenceMs;
    const sequence = isSecond ? `${first} ${event.key}` : "";
    first = "";
    const run = !modified && (bindings[sequence] ?? (sequence ? null : bindings[event.key]));
    if (run) {
      event.preventDefault();
      run();
    } else if (!modified && !sequence && event.key === "g") {
      first = "g";
      firstAt = event.timeStamp;
    } else if (ownKey(event)) {
      return;
    } else if (rest(event)) {
      event.preventDefault();
    }
  });
}

// Enter and Space on a button or a link, and the arrows in a scrolling box, keep their usual
// effect.
function ownKey(event) {
  const target = event.target;
  if (event.key === "Enter" || event.key === " ") {
    return target.matches?.("a, button, summary, input");
  }
  return /^(Arrow|Page|Home|End)/.test(event.key) && target.matches?.(".body, .task-failures");
}
