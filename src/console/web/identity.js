// Which server this page shows: http.title and http.color, the host, and the node of a cluster. The
// header, the title of the tab and every dialog that asks before an action have it.

import { h } from "./dom.js";
import { visible } from "./format.js";
import { currentAccess } from "./rights.js";
import { store } from "./store.js";

let shown = "";

// {title, host, node}; "" is not known, or none.
function names() {
  const { title } = currentAccess();
  const node = store.server?.["cluster-name"];
  return { title: visible(title ?? ""), host: visible(store.server?.hostname ?? location.host),
    node: node === undefined ? "" : visible(node) };
}

// "production (queue-1, node b)", or "queue-1, node b" without a title.
export function serverName() {
  const { title, host, node } = names();
  const place = node ? `${host}, node ${node}` : host;
  return title ? `${title} (${place})` : place;
}

function parts() {
  const { title, host, node } = names();
  const place = node ? `${host}, node ${node}` : host;
  return [title && h("strong", null, title), title && " ",
    title ? h("span", null, `(${place})`) : h("strong", null, place)];
}

export function serverElement() {
  return h("span", { class: "server-name" }, parts());
}

// Black or white, whichever has more contrast with the color: at least 4.5 : 1 with any color.
function readableOn(color) {
  const probe = h("span");
  probe.style.color = color;
  document.body.append(probe);
  const channels = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  const [red, green, blue] = channels.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

// Shows what is known now. Returns true if it has changed.
export function showServerName() {
  const { color } = currentAccess();
  const name = serverName();
  if (shown === `${name} ${color}`) return false;
  shown = `${name} ${color}`;
  const { style } = document.documentElement;
  if (color) {
    style.setProperty("--server", color);
    style.setProperty("--on-server", readableOn(color));
  }
  document.documentElement.classList.toggle("colored", Boolean(color));
  const element = document.getElementById("server-name");
  element.replaceChildren(...parts().filter(Boolean));
  element.title = name;
  return true;
}
