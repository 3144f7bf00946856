// Formats numbers, sizes, times and hostile text for users.

// Made on first use, because that takes a while.
const formats = {
  get whole() {
    return define(this, "whole", new Intl.NumberFormat("en"));
  },
  get tenths() {
    return define(this, "tenths", new Intl.NumberFormat("en", { maximumFractionDigits: 1 }));
  },
  get exact() {
    return define(this, "exact", new Intl.NumberFormat("en", { maximumFractionDigits: 6 }));
  },
  get local() {
    return define(this, "local", dateFormats(undefined));
  },
  get UTC() {
    return define(this, "UTC", dateFormats("UTC"));
  },
};

function dateFormats(timeZone) {
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone };
  const day = { month: "short", day: "numeric" };
  return { long: new Intl.DateTimeFormat(undefined, { year: "numeric", ...day, ...time,
    timeZoneName: "short" }),
  short: new Intl.DateTimeFormat("en-GB", { ...day, ...time, hourCycle: "h23" }) };
}

let shownZone = "local";

// The zone of dates: "local", that of the browser, or "UTC".
export function zone() {
  return shownZone;
}

export function setZone(name) {
  shownZone = name;
}

function define(object, key, value) {
  Object.defineProperty(object, key, { value });
  return value;
}

export const kNone = "–";

export function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? formats.whole.format(value) : kNone;
}

// A number with all its digits.
export function exact(value) {
  return formats.exact.format(value);
}

export function rate(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return kNone;
  return value >= 100 ? formats.whole.format(Math.round(value)) : formats.tenths.format(value);
}

// A number for the axis of a chart: 1,200 is 1.2k.
export function short(value) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(value) >= size) return `${formats.tenths.format(value / size)}${unit}`;
  }
  return formats.tenths.format(value);
}

export function bytes(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return kNone;
  for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20],
    ["KiB", 1024]]) {
    if (value >= size) return `${formats.tenths.format(value / size)} ${unit}`;
  }
  return `${formats.whole.format(value)} B`;
}

export function percent(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : kNone;
}

// A length of time with at most two units: 45 s, 3 min 20 s, 2 h 5 min, 3 d 4 h.
export function duration(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return kNone;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return twoUnits(whole, 60, "min", 1, "s");
  if (whole < 86400) return twoUnits(whole, 3600, "h", 60, "min");
  return twoUnits(whole, 86400, "d", 3600, "h");
}

function twoUnits(seconds, big, bigName, small, smallName) {
  const rest = Math.floor((seconds % big) / small);
  const first = `${formats.whole.format(Math.floor(seconds / big))} ${bigName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}

// A short time with its precision, for latencies: 2.5 ms, 1.2 s, 3 min. 0 means unknown.
export function latency(seconds) {
  if (!(seconds > 0)) return kNone;
  if (seconds < 0.001) return `${formats.tenths.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${formats.tenths.format(seconds * 1e3)} ms`;
  if (seconds < 60) return `${formats.tenths.format(seconds)} s`;
  return duration(seconds);
}

export function date(milliseconds) {
  return formats[shownZone].long.format(new Date(milliseconds));
}

// The same without the year and the zone, for columns.
export function shortDate(milliseconds) {
  return formats[shownZone].short.format(new Date(milliseconds));
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// Characters that are invisible, or change the order in which others are shown.
const kInvisible = new RegExp(`[${[
  "\\u{0}-\\u{1f}\\u{7f}-\\u{9f}\\u{ad}\\u{34f}\\u{61c}\\u{180e}\\u{200b}-\\u{200f}",
  "\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{feff}\\u{fff9}-\\u{fffb}\\u{e0000}-\\u{e007f}",
].join("")}]`, "gu");

function escaped(character) {
  return `\\u{${character.codePointAt(0).toString(16)}}`;
}

// A name, tag or address in one line, with such characters as escapes.
export function visible(text) {
  return String(text).replace(kInvisible, escaped);
}

// The parts of a body: [text, isEscape]. Line ends and tabs are kept; adjacent escapes are one
// part.
export function visibleParts(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(kInvisible)) {
    if (match[0] === "\n" || match[0] === "\t") continue;
    const last = parts.at(-1);
    if (match.index > from) parts.push([text.slice(from, match.index), false]);
    if (match.index === from && last?.[1]) last[0] += escaped(match[0]);
    else parts.push([escaped(match[0]), true]);
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push([text.slice(from), false]);
  return parts;
}
