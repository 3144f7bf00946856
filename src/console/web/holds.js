// Reservations that this page holds: the token of each job, in sessionStorage, which survives a
// reload of the page.

import { load, save } from "./storage.js";

const kKey = "holds";
const listeners = new Set();

// {id: {token, tube, until}}, `until` by this browser's clock.
export function holds() {
  const now = Date.now();
  const all = load(kKey, {}, sessionStorage);
  return Object.fromEntries(Object.entries(all).filter(([, { until }]) => until > now));
}

export function holdOf(id) {
  return holds()[id];
}

function write(all) {
  save(kKey, all, sessionStorage);
  for (const listener of listeners) listener();
}

export function hold({ id, token, tube, "time-left": left }) {
  write({ ...holds(), [id]: { token, tube, until: Date.now() + left * 1000 } });
}

export function extendHold(id, seconds) {
  const all = holds();
  if (all[id]) write({ ...all, [id]: { ...all[id], until: Date.now() + seconds * 1000 } });
}

export function dropHold(id) {
  const { [id]: dropped, ...rest } = holds();
  if (dropped) write(rest);
}

export function onHolds(listener) {
  listeners.add(listener);
}
