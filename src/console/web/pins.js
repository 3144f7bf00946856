// The pinned tubes of this browser.

import { load, save } from "./storage.js";

const pins = new Set(load("pins", []));

export const isPinned = (name) => pins.has(name);

export function togglePin(name) {
  if (!pins.delete(name)) pins.add(name);
  save("pins", [...pins]);
}
