// Absolute times next to relative times: a click on a time, or the key t, shows the absolute time
// next to each relative time, in the zone of the browser or in UTC.

import { setZone, shortDate, zone } from "./format.js";
import { load, save } from "./storage.js";

let shown = load("moments", false) === true;
const listeners = new Set();

// True if times are shown with their moments.
export function momentsShown() {
  return shown;
}

// A relative time, with its moment (ms, or null: it has none) if moments are shown.
export function withMoment(text, moment) {
  return shown && moment !== null ? `${text} · ${shortDate(moment)}` : text;
}

// `listener` is called when times have to be shown in another way. Returns a function that ends
// this.
export function onMoments(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

export function toggleMoments() {
  shown = !shown;
  save("moments", shown);
  changed();
}

function labelZone() {
  const button = document.getElementById("zone");
  const isUtc = zone() === "UTC";
  button.textContent = isUtc ? "UTC" : "local";
  button.setAttribute("aria-label", `Zone of times: ${isUtc ? "UTC" : "local"}`);
  button.title = `Times are ${isUtc ? "in UTC" : "in the zone of this browser"} (press to change)`;
}

export function toggleZone() {
  setZone(zone() === "UTC" ? "local" : "UTC");
  save("zone", zone());
  labelZone();
  changed();
}

export function installMoments() {
  setZone(load("zone", "local") === "UTC" ? "UTC" : "local");
  labelZone();
  document.getElementById("zone").addEventListener("click", toggleZone);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".time")) toggleMoments();
  });
}
