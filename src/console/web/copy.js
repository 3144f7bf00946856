// Buttons that copy a text. A page without TLS has no navigator.clipboard, except on localhost.

import { h } from "./dom.js";
import { toast } from "./toast.js";

async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "visually-hidden", value: text, "aria-hidden": "true",
    tabindex: "-1" });
  const focused = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus?.({ preventScroll: true });
  if (!copied) throw new Error("The browser refuses to copy.");
  return undefined;
}

// `text()` returns what is copied; `what` names it: "the id".
export function copyButton(what, action, text) {
  return h("button", { type: "button", class: "copy", "data-action": action,
    "aria-label": `Copy ${what}`, title: `Copy ${what}`, onclick: async () => {
      try {
        await write(text());
        toast(`Copied ${what}.`);
      } catch {
        toast(`The browser refuses to copy ${what}: select and copy it.`, "error");
      }
    } }, "Copy");
}
