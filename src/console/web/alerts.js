// What deserves attention, in plain words: {level, text, link, key}. Computed from the store.

import { store } from "./store.js";
import { bytes, duration, number, plural, visible } from "./format.js";
import { link, tubeLink } from "./router.js";

const kIdleMs = 30_000;            // ready jobs and no reservation for this long
const kBuriedWindowMs = 5 * 60_000;
const kOldSeconds = 15 * 60;
const kRank = { error: 0, warning: 1, info: 2 };

export function computeAlerts() {
  const server = store.server;
  if (!server) return [];
  const alerts = [...serverAlerts(server), ...tubeAlerts()];
  return alerts.sort((a, b) => kRank[a.level] - kRank[b.level] || b.weight - a.weight);
}

function serverAlerts(server) {
  const alerts = [];
  const add = (key, level, text) => alerts.push({ key, level, text, link: link(["server"]),
    weight: Infinity });
  if (server.draining === true || server.draining === "true") {
    add("draining", "warning", "The server is draining: it takes no new jobs.");
  }
  const memory = server["job-memory"] / server["max-job-memory"];
  if (memory >= 0.8) {
    add("memory", memory >= 0.95 ? "error" : "warning",
      `Jobs use ${Math.round(100 * memory)} % of their memory `
      + `(${bytes(server["job-memory"])} of ${bytes(server["max-job-memory"])}). `
      + "At the limit the server refuses puts.");
  }
  const most = server["journal-max-bytes"];
  const journal = most > 0 ? server["journal-bytes"] / most : 0;
  if (journal >= 0.85) {
    const live = server["journal-live-bytes"] / most;
    add("journal", live >= 0.85 ? "error" : "warning",
      `The journal uses ${Math.round(100 * journal)} % of its ${bytes(most)}; the jobs alone need `
      + `${Math.round(100 * live)} %. When it is full, the server refuses puts.`);
  }
  return [...alerts, ...oldestAlert(server)];
}

function oldestAlert(server) {
  const oldest = server["oldest-ready"];
  if (!oldest || oldest.age < kOldSeconds) return [];
  return [{ key: "oldest", level: "info", link: tubeLink(oldest.tube), weight: Infinity,
    text: `${visible(oldest.tube)}: the oldest ready job waits for ${duration(oldest.age)}.` }];
}

function tubeAlerts() {
  const now = Date.now();
  const alerts = [];
  for (const tube of store.tubes.values()) {
    const buried = buriedGrowth(tube, now);
    if (tube.ready === 0 && tube.pause === 0 && buried === 0) continue;
    const name = visible(tube.name);
    const idle = idleText(tube, now);
    if (tube["pause-left"] > 0) {
      alerts.push({ key: `paused ${tube.name}`, level: "info", link: tubeLink(tube.name),
        weight: tube.ready,
        text: `${name}: paused for another ${duration(tube["pause-left"])}`
          + `${tube.ready > 0 ? `, ${number(tube.ready)} ready` : ""}.` });
    } else if (idle) {
      alerts.push({ key: `idle ${tube.name}`, level: "warning", link: tubeLink(tube.name),
        weight: tube.ready, text: `${name}: ${number(tube.ready)} ready, ${idle}.` });
    }
    if (buried > 0) {
      alerts.push({ key: `buried ${tube.name}`, level: "warning", weight: tube.buried,
        link: tubeLink(tube.name, { state: "buried" }),
        text: `${name}: ${plural(buried, "more buried job")} in the last minutes, `
          + `${number(tube.buried)} in all.` });
    }
  }
  return alerts;
}

function idleText(tube, now) {
  if (tube.ready === 0) return "";
  if (tube.watching === 0 && tube.reserved === 0 && now - tube.reservedAt >= 5000) {
    return "no worker watches it";
  }
  const idle = now - tube.reservedAt;
  return idle < kIdleMs ? "" : `nothing reserved for ${duration(idle / 1000)}`;
}

// How many more jobs are buried than at the start of the window before this one.
function buriedGrowth(tube, now) {
  const marks = (tube.buriedMarks ??= { since: now, before: tube.buried, current: tube.buried });
  if (now - marks.since > kBuriedWindowMs) {
    marks.before = marks.current;
    marks.current = tube.buried;
    marks.since = now;
  }
  marks.before = Math.min(marks.before, tube.buried);
  return tube.buried - marks.before;
}
