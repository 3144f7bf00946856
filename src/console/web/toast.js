// Short messages in a corner, and the live region for screen readers.

import { h, iconButton, setText } from "./dom.js";
import { detailOf } from "./api.js";

const kShownMs = 6000;

// kind: "ok", "error" or "info". Errors stay until they are closed.
export function toast(text, kind = "ok") {
  const list = document.getElementById("toasts");
  const item = h("div", { class: `toast toast-${kind}`, "data-toast": kind,
    role: kind === "error" ? "alert" : "status" }, h("span", { class: "toast-text" }, text));
  item.append(iconButton("close", "Close this message", { onclick: () => item.remove() }));
  list.append(item);
  while (list.children.length > 5) list.firstElementChild.remove();
  if (kind !== "error") setTimeout(() => item.remove(), kShownMs);
  return item;
}

export function toastError(error, context) {
  if (error?.name === "AbortError") return;
  const detail = detailOf(error);
  toast(context ? `${context}: ${detail}` : detail, "error");
}

export function closeToasts() {
  const list = document.getElementById("toasts");
  const any = list.children.length > 0;
  list.replaceChildren();
  return any;
}

export function announce(text) {
  setText(document.getElementById("announcer"), text);
}
