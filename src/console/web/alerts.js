// Alerts: everything that needs attention, in plain words. Computed from the store every two
// seconds, whatever view is shown: the navigation shows their number, and screen readers read out
// new alerts.

import { cluster } from "./cluster.js";
import { bytes, duration, number, plural, visible } from "./format.js";
import { link, tubeLink } from "./router.js";
import { store } from "./store.js";
import { announce } from "./toast.js";

const kEveryMs = 2000;
const kIdleMs = 30_000;            // ready jobs and no reservation for this long
const kUnwatchedMs = 5000;         // ready jobs and no worker for this long
const kBuriedWindowMs = 5 * 60_000;
const kOldSeconds = 15 * 60;
const kSilentMs = 10_000;          // a member of the cluster without contact for this long
const kFullLog = 0.5;              // share of the raft log's limit
const kFull = 0.8;                 // share of a limit that needs attention
const kVeryFull = 0.95;
const kRank = { error: 0, warning: 1, info: 2 };

// An alert is {key, level, weight, text(), link()}. Texts are made on demand, because with
// thousands of tubes most alerts are never shown.
export const alerts = {
  list: [],
  computedAt: 0,

  clear() {
    this.list = [];
    this.computedAt = 0;
    this.seen = null;
  },

  // Returns true if the alerts were computed again.
  update() {
    const now = Date.now();
    if (!store.server || now - this.computedAt < kEveryMs) return false;
    this.computedAt = now;
    this.list = [...serverAlerts(store.server), ...clusterAlerts(cluster.state), ...tubeAlerts(now)]
      .sort((a, b) => kRank[a.level] - kRank[b.level] || b.weight - a.weight);
    this.announceNew();
    return true;
  },

  urgent() {
    const end = this.list.findIndex(({ level }) => level === "info");
    return end < 0 ? this.list.length : end;
  },

  announceNew() {
    const urgent = this.list.slice(0, this.urgent());
    const fresh = this.seen ? urgent.filter(({ key }) => !this.seen.has(key)) : [];
    this.seen = new Set(urgent.map(({ key }) => key));
    if (fresh.length === 0) return;
    const more = fresh.length > 1 ? ` And ${number(fresh.length - 1)} more.` : "";
    announce(fresh[0].text() + more);
  },
};

function serverAlerts(server) {
  const found = [];
  const add = (key, level, text, target = link(["server"])) => found.push({ key, level,
    weight: Infinity, text: () => text, link: () => target });
  if (server.draining === true || server.draining === "true") {
    add("draining", "warning", "The server is draining: it takes no new jobs.");
  }
  const memory = server["job-memory"] / server["max-job-memory"];
  if (memory >= kFull) {
    add("memory", memory >= kVeryFull ? "error" : "warning",
      `Jobs use ${Math.round(100 * memory)} % of their memory `
      + `(${bytes(server["job-memory"])} of ${bytes(server["max-job-memory"])}). `
      + "At the limit the server refuses puts.");
  }
  const most = server["journal-max-bytes"];
  if (most > 0 && server["journal-bytes"] / most >= kFull) {
    const live = server["journal-live-bytes"] / most;
    add("journal", live >= kFull ? "error" : "warning",
      `The journal uses ${Math.round((100 * server["journal-bytes"]) / most)} % of its `
      + `${bytes(most)}; the jobs alone need ${Math.round(100 * live)} %. `
      + "When it is full, the server refuses puts.");
  }
  const oldest = server["oldest-ready"];
  if (oldest?.age >= kOldSeconds) {
    add("oldest", "info", `${visible(oldest.tube)}: the oldest ready job waits for `
      + `${duration(oldest.age)}.`, tubeLink(oldest.tube));
  }
  return found;
}

function clusterAlerts(state) {
  if (!state) return [];
  const found = [];
  const add = (key, level, text) => found.push({ key, level, weight: Infinity, text: () => text,
    link: () => link(["nodes"]) });
  if (!state.leader && state.role !== "waiting" && state.role !== "fetching") {
    add("no leader", "error", "The cluster has no leader: no node serves clients.");
  }
  for (const { name, silent_ms: silence } of state.members) {
    if (silence < kSilentMs) continue;
    add(`silent ${name}`, "warning", `Node ${visible(name)}: no answer for `
      + `${duration(silence / 1000)}.`);
  }
  if (state.raft_log_limit > 0 && state.raft_log_bytes >= kFullLog * state.raft_log_limit) {
    add("raft log", "warning", `The raft log uses ${bytes(state.raft_log_bytes)} of its `
      + `${bytes(state.raft_log_limit)}: a node lacks many entries.`);
  }
  return found;
}

function tubeAlerts(now) {
  const found = [];
  for (const tube of store.tubes.values()) {
    const buried = buriedGrowth(tube, now);
    if (tube["pause-left"] > 0) {
      found.push({ key: `paused ${tube.name}`, level: "info", weight: tube.ready,
        text: () => pausedText(tube), link: () => tubeLink(tube.name) });
    } else if (isIdle(tube, now)) {
      found.push({ key: `idle ${tube.name}`, level: "warning", weight: tube.ready,
        text: () => idleText(tube), link: () => tubeLink(tube.name) });
    }
    if (buried > 0) {
      found.push({ key: `buried ${tube.name}`, level: "warning", weight: tube.buried,
        text: () => `${visible(tube.name)}: ${plural(buried, "more buried job")} in the last `
          + `minutes, ${number(tube.buried)} in all.`,
        link: () => tubeLink(tube.name, { state: "buried" }) });
    }
  }
  return found;
}

function pausedText(tube) {
  const ready = tube.ready > 0 ? `, ${number(tube.ready)} ready` : "";
  return `${visible(tube.name)}: paused for another ${duration(tube["pause-left"])}${ready}.`;
}

const hasNoWorker = (tube) => tube.watching === 0 && tube.reserved === 0;

function isIdle(tube, now) {
  if (tube.ready === 0) return false;
  return now - tube.waitingSince >= (hasNoWorker(tube) ? kUnwatchedMs : kIdleMs);
}

function idleText(tube) {
  const why = hasNoWorker(tube) ? "no worker watches it"
    : `nothing reserved for ${duration((Date.now() - tube.waitingSince) / 1000)}`;
  return `${visible(tube.name)}: ${number(tube.ready)} ready, ${why}.`;
}

// The increase of buried jobs since the start of the previous window.
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
