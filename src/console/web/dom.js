// Builds elements. A string becomes a text node, never HTML: text of the server cannot become
// markup.

const kProperties = new Set(["value", "checked", "disabled", "hidden", "indeterminate", "open"]);

// h("button", { class: "primary", onclick: save, "data-action": "save" }, "Save")
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (kProperties.has(key)) element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// Writes the text only if it differs, because most live numbers of a table do not change.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const kIcons = {
  menu: "M3 8h.01M8 8h.01M13 8h.01",
  pin: "M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM14 14l-3.5-3.5",
};

export function icon(name) {
  const kSvg = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(kSvg, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(kSvg, "path");
  path.setAttribute("d", kIcons[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, props) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label,
    ...props }, icon(name));
}
