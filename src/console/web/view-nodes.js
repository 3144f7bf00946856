// The nodes of the cluster, as reported by the node that serves this page. Only the leader knows
// how far the others are.

import { cluster } from "./cluster.js";
import { h, replace, setText } from "./dom.js";
import { bytes, duration, kNone, number, visible } from "./format.js";
import { store } from "./store.js";

const kSilentMs = 2000;
const kColumns = ["Node", "Role", "State", "Match", "Lag", "Last answer", "Address", "Lag in time"];
const kRoles = {
  waiting: "waits to be added to a cluster", fetching: "fetches the state of another node",
  standby: "standby", follower: "follower", candidate: "candidate in an election",
  leader: "leader",
};

// Why the node does not serve clients; "" if it does.
export function refusalOfNode(state) {
  if (!state || state.serves) return "";
  const reason = state.role === "waiting" || state.role === "fetching"
    ? `It ${kRoles[state.role]}.`
    : state.role === "leader" ? "It was just elected."
      : state.leader ? `The leader is ${visible(state.leader)}.` : "There is no leader.";
  return `This node, ${visible(state.name)}, does not serve clients. ${reason}`;
}

// The address of the leader's console, or "". A node knows the others by their addresses in the
// cluster, or where it reaches them, which have the hosts of their consoles if that of this page is
// one of them. The ports of the consoles are the same unless nodes share a host.
export function leaderConsole(state) {
  if (!state || state.serves || !state.leader || location.pathname !== "/") return "";
  const hostOf = (member) => {
    const address = member?.reached_at ?? member?.address;
    return address?.slice(0, address.lastIndexOf(":"));
  };
  const own = hostOf(state.members.find(({ self }) => self));
  const leader = hostOf(state.members.find(({ name }) => name === state.leader));
  if (own !== location.hostname || !leader || leader === own) return "";
  return `${location.protocol}//${leader}${location.port ? `:${location.port}` : ""}/`;
}

function milliseconds(value) {
  if (typeof value !== "number") return kNone;
  return value < 1000 ? `${number(value)} ms` : duration(value / 1000);
}

function lagOf(member, state) {
  return member.match === null ? null : Math.max(0, state.committed - member.match);
}

// Returns [words, tone].
function stateOf(member, state) {
  if (state.role !== "leader") return [member.self ? kRoles[state.role] : kNone, ""];
  if (member.self) return [state.serves ? "serves clients" : "does not serve yet", ""];
  if (member.silent_ms === null) return ["no answer yet", "alarm"];
  if (member.silent_ms > kSilentMs) return ["silent", "alarm"];
  return lagOf(member, state) === 0 ? ["up to date", "calm"] : ["catches up", ""];
}

function roleOf(member) {
  if (member.leads) return "leader";
  return member.votes ? "voter" : "standby";
}

export class NodesView {
  title = "Nodes";
  live = true;

  constructor() {
    this.notice = h("p", { class: "notice", hidden: true, role: "status" });
    this.facts = h("dl", { class: "facts" });
    this.body = h("tbody");
    this.members = h("section", { class: "panel", "aria-labelledby": "members-title" },
      h("h2", { id: "members-title" }, "Members"),
      h("table", { class: "plain stacked", "aria-label": "Members of the cluster",
        "data-table": "nodes" }, h("thead", null, h("tr", null,
        kColumns.map((title) => h("th", { scope: "col" }, title)))), this.body),
      h("p", { class: "muted" }, "Match is the last entry that a member is known to have, lag the "
        + "number of committed entries that it lacks, and lag in time how long ago the oldest entry "
        + "was made that its disk lacks. The leader alone knows them."));
    this.element = h("div", { class: "view-nodes" }, this.notice, this.facts, this.members);
    this.unsubscribe = cluster.subscribe(() => this.#show());
    this.#show();
  }

  // Called each second, because the stream may only now report a cluster.
  tick() {
    if (!cluster.state) this.#show();
  }

  #show() {
    const { state } = cluster;
    const notice = cluster.problem || (state || !store.server ? ""
      : cluster.exists ? "Loading." : "The server is in no cluster.");
    setText(this.notice, notice);
    this.notice.hidden = notice === "";
    this.members.hidden = !state;
    this.facts.hidden = !state;
    if (!state) return;
    this.#showFacts(state);
    replace(this.body, state.members.map((member) => this.#row(member, state)));
  }

  #showFacts(state) {
    const facts = [["This node", visible(state.name), `Id ${state.id}`],
      ["Role", kRoles[state.role] ?? state.role],
      ["Clients", state.serves ? "served" : "not served"],
      ["Leader", state.leader ? visible(state.leader) : "none"], ["Term", number(state.term)],
      ["Committed", number(state.committed), "The last entry that a majority has"],
      ["Applied", number(state.applied), "The last entry in the queue of this node"],
      ["Stored", number(state.stored), "The last entry on the disk of this node"],
      ["Raft log", `${bytes(state.raft_log_bytes)} of ${bytes(state.raft_log_limit)}`]];
    if (state.lease_ms !== null) facts.push(["Lease", milliseconds(state.lease_ms)]);
    if (state.fetched_bytes !== null) {
      const all = state.fetch_bytes === null ? "" : ` of ${bytes(state.fetch_bytes)}`;
      facts.push(["Fetched", bytes(state.fetched_bytes) + all]);
    }
    if (state.held_over > 0) {
      facts.push(["Held over", number(state.held_over),
        "Jobs that are held for clients of a former leader"]);
    }
    facts.push(["Feature level", number(state.feature_level)], ["Cluster", state.cluster]);
    replace(this.facts, facts.map(([label, value, title]) => h("div", { class: "fact",
      "data-fact": label }, h("dt", null, label), h("dd", { title }, value))));
  }

  #row(member, state) {
    const [words, tone] = stateOf(member, state);
    const role = roleOf(member);
    return h("tr", { "data-key": member.name },
      h("th", { scope: "row", title: `Id ${member.id}` }, visible(member.name),
        member.self && h("span", { class: "chip" }, "this node")),
      h("td", { "data-label": "Role", "data-column": "role" },
        h("span", { class: `chip role-${role}`,
          title: member.stays ? "Stays without a vote until it is promoted" : undefined }, role)),
      h("td", { "data-label": "State", "data-column": "state", class: tone }, words),
      h("td", { "data-label": "Match", "data-column": "match" },
        member.match === null ? kNone : number(member.match)),
      h("td", { "data-label": "Lag", "data-column": "lag" },
        member.match === null ? kNone : number(lagOf(member, state))),
      h("td", { "data-label": "Last answer", "data-column": "silence" },
        member.self ? kNone : milliseconds(member.silent_ms)),
      h("td", { "data-label": "Address", class: "muted", "data-column": "address",
        title: member.reached_at ? `Its address in the cluster is ${visible(member.address)}.` : undefined },
      member.reached_at ? `${visible(member.reached_at)} (moved)` : visible(member.address)),
      h("td", { "data-label": "Lag in time", "data-column": "lag-time" },
        milliseconds(member.lag_ms)));
  }

  refresh() {
    cluster.refresh();
  }

  leave() {
    this.unsubscribe();
  }
}
