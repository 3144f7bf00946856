// Shows the body of a job: as text, as JSON with line breaks, or as a hex dump.

import { copyButton } from "./copy.js";
import { h, replace } from "./dom.js";
import { bytes, number, visible, visibleParts } from "./format.js";
import { download } from "./csv.js";

const kTextStep = 200_000;    // characters shown at first, and with each "Show more"
const kHexStep = 16_384;      // bytes
const kMostJson = 2_000_000;  // longer bodies are not formatted
const kMostIndents = 40;      // deeper levels are not indented further
const kMostPretty = 8_000_000;

export function decodeText(data) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return null;
  }
}

// JSON with line breaks and indents. Numbers and strings are copied from the body, because
// JSON.parse loses digits of large numbers. Null if the text is not JSON, or would become too long.
export function prettyJson(text) {
  if (text.length > kMostJson || !/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  let result = "";
  let depth = 0;
  for (const [i, token] of tokens.entries()) {
    const line = () => `\n${"  ".repeat(Math.min(depth, kMostIndents))}`;
    if (token === "{" || token === "[") {
      const closes = tokens[i + 1] === "}" || tokens[i + 1] === "]";
      depth += 1;
      result += closes ? token : token + line();
    } else if (token === "}" || token === "]") {
      const opened = tokens[i - 1] === "{" || tokens[i - 1] === "[";
      depth -= 1;
      result += opened ? token : line() + token;
    } else if (token === ",") {
      result += token + line();
    } else {
      result += token === ":" ? ": " : token;
    }
    if (result.length > kMostPretty) return null;
  }
  return result;
}

// Lines of "offset  16 bytes in hex  the same bytes as ASCII".
export function hexDump(data, from, to) {
  const lines = [];
  for (let offset = from; offset < to; offset += 16) {
    let hex = "";
    let ascii = "";
    for (let i = offset; i < offset + 16; ++i) {
      if (i % 8 === 0) hex += " ";
      if (i >= to) {
        hex += "   ";
        continue;
      }
      hex += ` ${data[i].toString(16).padStart(2, "0")}`;
      ascii += data[i] >= 32 && data[i] < 127 ? String.fromCharCode(data[i]) : ".";
    }
    lines.push(`${offset.toString(16).padStart(8, "0")}${hex}  |${ascii}|`);
  }
  return lines.join("\n");
}

function hexDigits(data) {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The beginning of a body, in one line.
export function snippet(data) {
  if (data.length === 0) return "(empty)";
  const text = decodeText(data.subarray(0, 400)) ?? decodeText(data.subarray(0, cut(data, 400)));
  if (text !== null) return visible(text.slice(0, 200).replace(/\s+/g, " ").trim());
  return Array.from(data.subarray(0, 32), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

// The last place before `limit` that does not split a character of UTF-8.
function cut(data, limit) {
  let end = Math.min(limit, data.length);
  while (end > 0 && end > limit - 4 && (data[end] & 0xc0) === 0x80) end -= 1;
  return end;
}

export class BodyView {
  constructor() {
    this.format = "";
    this.tabs = h("div", { class: "tabs small", role: "group", "aria-label": "Show the body as" });
    this.size = h("span", { class: "muted" });
    this.save = h("button", { type: "button", "data-action": "download-body",
      onclick: () => this.#download() }, "Download");
    this.copy = copyButton("the body", "copy-body", () => this.text ?? hexDigits(this.data));
    this.more = h("button", { type: "button", hidden: true, "data-action": "more-body",
      onclick: () => this.#showMore() }, "Show more");
    this.pre = h("pre", { class: "body", tabindex: "0", "data-body": "",
      "aria-label": "Body of the job", role: "region" });
    this.element = h("div", { class: "body-view" },
      h("div", { class: "body-head" }, this.tabs, this.size, this.copy, this.save), this.pre,
      this.more);
  }

  message(...content) {
    this.id = undefined;
    replace(this.tabs);
    replace(this.pre, ...content);
    this.size.textContent = "";
    this.more.hidden = true;
    this.copy.hidden = this.save.hidden = true;
  }

  show(id, data) {
    this.id = id;
    this.data = data;
    this.text = decodeText(data);
    this.json = this.text === null ? null : prettyJson(this.text);
    this.size.textContent = `${number(data.length)} bytes`;
    this.size.title = bytes(data.length);
    this.copy.hidden = this.save.hidden = false;
    const hex = this.text === null ? "Copy hex" : "";
    this.copy.textContent = hex || "Copy";
    this.copy.setAttribute("aria-label", hex ? "Copy hex of the body" : "Copy the body");
    const formats = [this.json !== null && "JSON", this.text !== null && "Text", "Hex"]
      .filter(Boolean);
    const format = formats.includes(this.format) ? this.format : formats[0];
    replace(this.tabs, formats.map((each) => h("button", { type: "button",
      "data-format": each.toLowerCase(), onclick: () => this.#choose(each, true) }, each)));
    this.#choose(format);
  }

  #choose(format, byUser = false) {
    if (byUser) this.format = format;
    this.shownFormat = format;
    for (const button of this.tabs.children) {
      button.setAttribute("aria-pressed", String(button.textContent === format));
    }
    this.pre.replaceChildren();
    this.pre.scrollTop = 0;
    this.end = 0;
    this.#showMore();
  }

  #showMore() {
    const from = this.end;
    if (this.shownFormat === "Hex") {
      this.end = Math.min(from + kHexStep, this.data.length);
      this.pre.append(`${from > 0 ? "\n" : ""}${hexDump(this.data, from, this.end)}`);
      this.more.hidden = this.end >= this.data.length;
      return;
    }
    const text = this.shownFormat === "JSON" ? this.json : this.text;
    this.end = Math.min(from + kTextStep, text.length);
    for (const [part, isEscape] of visibleParts(text.slice(from, this.end))) {
      this.pre.append(isEscape ? h("span", { class: "escape" }, part) : part);
    }
    if (text.length === 0) this.pre.append("(empty)");
    this.more.hidden = this.end >= text.length;
  }

  #download() {
    download(`job-${this.id}.bin`, this.data, "application/octet-stream");
  }
}
