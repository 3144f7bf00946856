// Long actions: many requests, with a card that shows the progress and the failures, and a button
// that cancels the rest.

import { h, iconButton, setText } from "./dom.js";
import { detailOf, isBusy } from "./api.js";
import { number } from "./format.js";
import { announce } from "./toast.js";

const kAtOnce = 4;
const kMostFailures = 200;   // listed; all are counted
const kShownMs = 6000;
const kShowEveryMs = 80;

class Card {
  constructor(label, total, cancel) {
    this.total = total;
    this.label = label;
    this.bar = h("progress", { max: String(total || 1), "aria-label": label });
    this.bar.value = 0;
    this.count = h("span", { class: "task-count" });
    this.cancelButton = h("button", { type: "button", "data-action": "cancel-task",
      onclick: cancel }, "Cancel");
    this.failures = h("ul", { class: "task-failures" });
    this.details = h("details", { hidden: true }, h("summary", null, "Failures"), this.failures);
    this.element = h("section", { class: "task", "data-task": "running", "aria-label": label },
      h("div", { class: "task-head" }, h("strong", null, label), this.cancelButton), this.bar,
      this.count, this.details);
    document.getElementById("tasks").append(this.element);
    this.failed = 0;
    this.shownAt = -Infinity;
  }

  progress(done) {
    const now = performance.now();
    if (now - this.shownAt < kShowEveryMs) return;
    this.shownAt = now;
    this.bar.value = done;
    const failed = this.failed > 0 ? `, ${number(this.failed)} failed` : "";
    setText(this.count, `${number(done)} of ${number(this.total)}${failed}`);
  }

  failure(text) {
    this.failed += 1;
    this.details.hidden = false;
    if (this.failed <= kMostFailures) this.failures.append(h("li", null, text));
  }

  finish(state, text, done) {
    this.element.dataset.task = state;
    this.bar.value = done;
    setText(this.count, text);
    announce(`${this.label}: ${text}`);
    this.cancelButton.replaceWith(iconButton("close", "Close",
      { onclick: () => this.element.remove() }));
    if (this.failed === 0) setTimeout(() => this.element.remove(), kShownMs);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}

// Repeats a request while the server refuses it because of too many requests at once.
async function patiently(run, signal) {
  for (let attempt = 0; ; ++attempt) {
    try {
      return await run();
    } catch (error) {
      if (!isBusy(error) || attempt >= 8 || signal.aborted) throw error;
      await pause(50 * 2 ** attempt, signal);
    }
  }
}

// Runs `work(item, signal)` for each item, several at once. `items` is an array, or a number: the
// items are then 0, 1, ... Resolves with the number that succeeded.
export async function runEach({ label, items, work, nameOf = String, done = "done" }) {
  const controller = new AbortController();
  const { signal } = controller;
  const total = typeof items === "number" ? items : items.length;
  const card = new Card(label, total, () => controller.abort());
  let next = 0;
  let finished = 0;
  card.progress(0);
  const worker = async () => {
    while (next < total && !signal.aborted) {
      const item = typeof items === "number" ? next : items[next];
      next += 1;
      try {
        await patiently(() => work(item, signal), signal);
      } catch (error) {
        if (signal.aborted) return;
        card.failure(`${nameOf(item)}: ${detailOf(error)}`);
      }
      finished += 1;
      card.progress(finished);
    }
  };
  await Promise.all(Array.from({ length: Math.min(kAtOnce, total) }, worker));
  const succeeded = finished - card.failed;
  const failed = card.failed > 0 ? `, ${number(card.failed)} failed` : "";
  if (signal.aborted) {
    card.finish("cancelled", `Cancelled after ${number(succeeded)} of ${number(total)}${failed}.`,
      finished);
  } else {
    card.finish(failed ? "failed" : "done", `${number(succeeded)} ${done}${failed}.`, finished);
  }
  return succeeded;
}

// Runs `step(bound, signal)`, which handles at most `bound` jobs and returns their number, until
// `total` are handled or none remain. `rest` resolves with a sentence to add to the result.
export async function runSteps({ label, total, bound = 5000, step, done = "done",
  rest = async () => "" }) {
  const controller = new AbortController();
  const { signal } = controller;
  const card = new Card(label, total, () => controller.abort());
  let finished = 0;
  let ending = "";
  card.progress(0);
  try {
    while (finished < total && !signal.aborted) {
      const part = Math.min(bound, total - finished);
      const count = await patiently(() => step(part, signal), signal);
      finished += count;
      card.progress(finished);
      if (count < part) break;
    }
    if (!signal.aborted) ending = await rest();
  } catch (error) {
    if (!signal.aborted) card.failure(detailOf(error));
  }
  const text = `${number(finished)} ${done}`;
  if (signal.aborted) card.finish("cancelled", `Cancelled: ${text}.`, finished);
  else if (card.failed > 0) card.finish("failed", `Stopped: ${text}.`, finished);
  else card.finish("done", `${text}.${ending}`, finished);
  return finished;
}
