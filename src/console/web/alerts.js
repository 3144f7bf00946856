// Alerts: everything that needs attention, in plain words. Computed from the store every two
// seconds, whatever view is shown: the navigation shows their number, and screen readers read out
// new alerts. Many tubes with the same problem are one alert, which names the first of them.

import { cluster } from "./cluster.js";
import { bytes, duration, number, percent, plural, visible } from "./format.js";
import { link, tubeLink } from "./router.js";
import { store } from "./store.js";
import { announce } from "./toast.js";
import { leaderConsole, refusalOfNode } from "./view-nodes.js";

const kEveryMs = 2000;
const kIdleMs = 30_000;            // ready jobs and no reservation for this long
const kUnwatchedMs = 5000;         // ready jobs and no worker for this long
const kBuriedWindowMs = 5 * 60_000;
const kOldSeconds = 15 * 60;
const kSilentMs = 10_000;          // a member of the cluster without contact for this long
const kLagMs = 60_000;             // a member of the cluster lacks an entry for this long
const kClockMs = 1000;             // by which the clock of a member differs from the leader's
const kFullLog = 0.5;              // share of the raft log's limit
const kFull = 0.8;                 // share of a limit that needs attention
const kVeryFull = 0.95;
const kMostSingle = 3;             // more tubes with the same problem are one alert
const kNamed = 3;                  // tubes that it names
const kRank = { error: 0, warning: 1, info: 2 };

const minutes = (milliseconds) => duration(milliseconds / 1000);
const share = (part) => percent(part, 1);

// When there is an alert: [[name, sentence], ...].
export const thresholds = () => [
  ["No worker", `A tube has ready jobs, and for ${minutes(kUnwatchedMs)} no client watches it or `
    + "holds one of its jobs."],
  ["Nothing reserved", `A tube has ready jobs, and clients watch it, but for ${minutes(kIdleMs)} `
    + "none of its jobs was reserved."],
  ["Buried jobs", `A tube has more buried jobs than ${minutes(kBuriedWindowMs)} to `
    + `${minutes(2 * kBuriedWindowMs)} ago.`],
  ["Paused", "A tube is paused."],
  ["Oldest job", `The oldest ready job is older than ${duration(kOldSeconds)}.`],
  ["Memory and journal", `${share(kFull)} of max-job-memory or of journal.max_bytes are in use; `
    + `an error from ${share(kVeryFull)} of the memory on, and if the jobs alone need `
    + `${share(kFull)} of the journal.`],
  ["Drain mode", "The server takes no new jobs."],
  ["Cluster", `No node leads; a member has not answered for ${minutes(kSilentMs)}, or lacks an entry `
    + `for ${minutes(kLagMs)}; of three voters or more, just a majority answers; the clock of a `
    + `member differs by ${minutes(kClockMs)} from the leader's; members have different versions; `
    + `the raft log uses ${share(kFullLog)} of cluster.log_size. Tubes have alerts on the leader `
    + "only."],
];

// An alert is {key, level, weight, text(), link(), tubes}. Texts are made on demand. `tubes`: the
// names of the first tubes of an alert about many.
export const alerts = {
  list: [],
  computedAt: 0,
  servesSince: 0,     // this node of a cluster; 0: it does not serve clients

  clear() {
    this.list = [];
    this.computedAt = 0;
    this.servesSince = 0;
    this.seen = null;
  },

  // Returns true if the alerts were computed again.
  update() {
    const now = Date.now();
    if (!store.server || now - this.computedAt < kEveryMs) return false;
    this.computedAt = now;
    const serves = !cluster.exists || cluster.state?.serves === true;
    this.servesSince = serves ? this.servesSince || now : 0;
    this.list = [...serverAlerts(store.server, serves), ...clusterAlerts(cluster.state),
      ...(serves ? tubeAlerts(now, this.servesSince) : [])]
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

function serverAlerts(server, serves) {
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
  if (serves && oldest?.age >= kOldSeconds) {
    add("oldest", "info", `${visible(oldest.tube)}: the oldest ready job waits for `
      + `${duration(oldest.age)}.`, tubeLink(oldest.tube));
  }
  return found;
}

function clusterAlerts(state) {
  if (!state) return [];
  const found = [];
  const add = (key, level, text, target = link(["nodes"])) => found.push({ key, level,
    weight: Infinity, text: () => text, link: () => target });
  if (!state.leader && state.role !== "waiting" && state.role !== "fetching") {
    add("no leader", "error", "The cluster has no leader: no node serves clients.");
  }
  if (!state.serves && state.leader) {
    add("not serving", "info", `${refusalOfNode(state)} Its console has the alerts of tubes.`,
      leaderConsole(state) || undefined);
  }
  if (hasJustMajority(state)) {
    add("no spare voter", "error", "Just a majority of the voters answers: when one more fails, no "
      + "node serves clients.");
  }
  for (const member of state.members) {
    const { name, silent_ms: silence, failure } = member;
    if (silence >= kSilentMs) {
      add(`silent ${name}`, "warning", `Node ${visible(name)}: no answer for `
        + `${duration(silence / 1000)}${failure ? ` (${visible(failure)})` : ""}.`);
    } else if (member.lag_ms >= kLagMs) {
      add(`lag ${name}`, "warning", `Node ${visible(name)} lacks entries that were made `
        + `${duration(member.lag_ms / 1000)} ago.`);
    }
    if (member.clock_difference_ms > kClockMs) {
      add(`clock ${name}`, "warning", `Node ${visible(name)}: its clock differs by `
        + `${duration(member.clock_difference_ms / 1000)} from the leader's. Does NTP run?`);
    }
  }
  const levels = new Set(state.members.map(({ level }) => level).filter(Boolean));
  if (levels.size > 1) {
    add("levels", "info", "The nodes have different versions: the feature level of the cluster "
      + "stays as it is until all are upgraded.");
  }
  for (const { name, nodes } of state.settings_differ ?? []) {
    const groups = nodes.map((group) => group.map(visible).join(", ")).join(" / ");
    add(`setting ${name}`, "warning", `The setting ${visible(name)} differs between nodes (${groups}): `
      + "the queue changes when another node leads.");
  }
  if (state.raft_log_limit > 0 && state.raft_log_bytes >= kFullLog * state.raft_log_limit) {
    add("raft log", "warning", `The raft log uses ${bytes(state.raft_log_bytes)} of its `
      + `${bytes(state.raft_log_limit)}: a node lacks many entries.`);
  }
  return found;
}

// A cluster of one or two voters has no voter to spare.
function hasJustMajority({ role, members }) {
  const voters = members.filter(({ votes }) => votes);
  if (role !== "leader" || voters.length < 3) return false;
  const answering = voters.filter(({ self, silent_ms: silence }) =>
    self || (silence !== null && silence < kSilentMs));
  return answering.length <= Math.floor(voters.length / 2) + 1;
}

// Each kind of alert about tubes: its words for one tube and for many, and the list that shows
// them.
const kKinds = {
  paused: { level: "info", weight: (tube) => tube.ready, text: pausedText,
    many: (count) => `${count} tubes are paused.`, list: { sort: "pause-left", order: "desc" } },
  unwatched: { level: "warning", weight: (tube) => tube.ready, text: idleText,
    many: (count) => `${count} tubes have ready jobs, and for ${minutes(kUnwatchedMs)} or longer `
      + "no worker watches them.", list: { sort: "ready", order: "desc" } },
  idle: { level: "warning", weight: (tube) => tube.ready, text: idleText,
    many: (count) => `${count} tubes have ready jobs, and nothing was reserved for `
      + `${minutes(kIdleMs)} or longer.`, list: { sort: "ready", order: "desc" } },
  buried: { level: "warning", weight: (tube) => tube.buried, text: buriedText,
    many: (count) => `${count} tubes have more buried jobs than some minutes ago.`,
    list: { sort: "buried", order: "desc" }, of: { state: "buried" } },
};

function tubeAlerts(now, servesSince) {
  const found = Object.fromEntries(Object.keys(kKinds).map((kind) => [kind, []]));
  for (const tube of store.tubes.values()) {
    const growth = buriedGrowth(tube, now);
    if (tube["pause-left"] > 0) {
      found.paused.push({ tube });
    } else if (isIdle(tube, now, servesSince)) {
      found[hasNoWorker(tube) ? "unwatched" : "idle"].push({ tube });
    }
    if (growth > 0) found.buried.push({ tube, growth });
  }
  return Object.entries(found).flatMap(([kind, list]) =>
    (list.length > kMostSingle ? [alertOfMany(kind, list)] : list.map((each) =>
      alertOf(kind, each))));
}

// Its key names a tube without workers "idle", as one whose workers take nothing.
function alertOf(kind, { tube, growth }) {
  const { level, weight, text, of } = kKinds[kind];
  return { key: `${kind === "unwatched" ? "idle" : kind} ${tube.name}`, level,
    weight: weight(tube), text: () => text(tube, growth), link: () => tubeLink(tube.name, of),
    tubes: [] };
}

function alertOfMany(kind, list) {
  const { level, weight, many, list: query, of } = kKinds[kind];
  const first = [];
  for (const { tube } of list) {
    const at = first.findIndex((other) => weight(tube) > weight(other));
    first.splice(at < 0 ? first.length : at, 0, tube);
    if (first.length > kNamed) first.pop();
  }
  return { key: `many ${kind}`, level, weight: weight(first[0]),
    text: () => many(number(list.length)), link: () => link(["tubes"], query),
    tubes: first.map(({ name }) => ({ name, link: tubeLink(name, of) })) };
}

function buriedText(tube, growth) {
  return `${visible(tube.name)}: ${plural(growth, "more buried job")} in the last minutes, `
    + `${number(tube.buried)} in all.`;
}

function pausedText(tube) {
  const ready = tube.ready > 0 ? `, ${number(tube.ready)} ready` : "";
  return `${visible(tube.name)}: paused for another ${duration(tube["pause-left"])}${ready}.`;
}

const hasNoWorker = (tube) => tube.watching === 0 && tube.reserved === 0;

// Numbers that are polled do not say when the last job was reserved.
function isIdle(tube, now, servesSince) {
  if (tube.ready === 0 || (store.polled && !hasNoWorker(tube))) return false;
  const since = Math.max(tube.waitingSince, cluster.exists ? servesSince : 0);
  return now - since >= (hasNoWorker(tube) ? kUnwatchedMs : kIdleMs);
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
