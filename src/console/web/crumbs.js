// The path above the heading: from a job to its tube, from a tube to all tubes.

import { h, replace } from "./dom.js";

let shown = "";

// links: [[label, address], ...], the nearest last.
export function setCrumbs(links) {
  const key = JSON.stringify(links);
  if (key === shown) return;
  shown = key;
  const box = document.getElementById("crumbs");
  box.hidden = links.length === 0;
  replace(box, links.map(([label, address]) => [h("a", { href: address }, label), " / "]));
}
