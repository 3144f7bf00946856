// Nodes on their disks, without a host's queue: for tests of a node.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "cluster/founding.h"
#include "cluster/node.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kCluster = 7;

struct Host final : NodeHost {
  Time clock() const override { return now; }
  Time wall() const override { return now + ahead; }
  void send(NodeId to, std::string frame) override { sent.emplace_back(to, std::move(frame)); }
  void node_changed() override {}
  void fetch_state(NodeId from) override { fetched_from = from; }
  void node_failed(const std::string& reason) override { failure = reason; }
  void raft_log_full(bool /*full*/, const std::string& /*reason*/) override {}

  Time now{1h};
  Duration ahead{};  // wall clock minus monotonic clock
  std::vector<std::pair<NodeId, std::string>> sent;
  NodeId fetched_from = 0;
  std::string failure;
};

inline std::vector<Member> founders(NodeId count) {
  std::vector<Member> members;
  for (NodeId id = 1; id <= count; ++id)
    members.push_back(
        {.id = id, .role = MemberRole::voter, .address = "node " + std::to_string(id)});
  return members;
}

inline RaftLogOptions log_options() {
  RaftLogOptions options;
  options.file_bytes = 16 << 10;
  options.cluster = kCluster;
  return options;
}

inline NodeOptions node_options() {
  NodeOptions options;
  options.log = log_options();
  options.kept_entries = 4;
  return options;
}

inline void run(journal::TestDisk& disk, Node& node, Host& host) {
  for (int i = 0; i < 5; ++i) {
    node.tick();
    disk.run_all();
    host.now += 1ms;
  }
}

// Nodes 1 to `count`, all voters. A frame takes a millisecond, and a journal is on disk at once,
// unless a test changes that.
class NodeGroup {
 public:
  struct Machine {
    journal::TestDisk disk;
    Host host;
    std::unique_ptr<Node> node;
    bool silent = false;        // no frames arrive from it or reach it
    bool mute = false;          // no frames arrive from it
    bool stalled = false;       // its disk does no operations
    Duration delay{};           // of each frame from or to it
    Index behind = 0;           // entries missing in its journal
    Time heard;                 // when the last append arrived
    Duration longest{};         // between two appends
    std::uint64_t most_sent{};  // bytes of entries in one frame to it
    std::uint64_t sent{};       // in all frames
  };

  explicit NodeGroup(const NodeOptions& node_options, Level level = kFeatureLevel, NodeId count = 3)
      : options(node_options) {
    for (NodeId id = 1; id <= count; ++id) {
      machines.emplace_back();
      REQUIRE(found(of(id).disk, log_options(), id, founders(count), level).ok());
      start(id, founding_position(kCluster));
    }
  }

  Machine& of(NodeId id) { return machines.at(id - 1); }
  Node& node(NodeId id) { return *of(id).node; }
  void start(NodeId id, const Applied& base) {
    Machine& machine = of(id);
    machine.host.now = now;
    machine.host.fetched_from = 0;
    options.seed = static_cast<unsigned>(id);
    auto opened = Node::open(machine.disk, machine.host, options, base);
    REQUIRE(opened.ok());
    machine.node = std::move(opened).value();
  }

  void step() {
    now += 1ms;
    for (Machine& machine : machines) {
      for (auto& [to, frame] : machine.host.sent) {
        if (!machine.silent && !machine.mute)
          frames.emplace(now + machine.delay + of(to).delay, std::pair(to, std::move(frame)));
      }
      machine.host.sent.clear();
      machine.host.now = now;
    }
    for (; !frames.empty() && frames.begin()->first <= now; frames.erase(frames.begin())) {
      const auto& [to, frame] = frames.begin()->second;
      Machine& machine = of(to);
      if (machine.silent) continue;
      notice(machine, frame);
      const auto part = decode_part(frame);
      CHECK(machine.node->receive(part ? part->from : decode(frame)->from, frame) == "");
    }
    for (Machine& machine : machines) {
      machine.node->tick();
      if (!machine.stalled) machine.disk.run_all();
      machine.node->tick();
      const Index applicable = machine.node->applicable();
      if (applicable > machine.behind) machine.node->journal_synced(applicable - machine.behind);
      CHECK(machine.host.failure.empty());
    }
  }
  NodeId elect() {
    for (int i = 0; i < 2000; ++i, step()) {
      for (NodeId id = 1; id <= machines.size(); ++id) {
        if (node(id).leads() && node(id).lease_end() > now) return id;
      }
    }
    FAIL("no leader");
    return 0;
  }
  // Runs steps, each with an entry.
  void load(NodeId leader, int steps, std::size_t bytes = 10) {
    for (int i = 0; i < steps; ++i, step()) submit(leader, bytes);
  }
  void submit(NodeId leader, std::size_t bytes) {
    REQUIRE(node(leader).submit({Bytes::copy_of(std::string(bytes, 'x'))}) != 0);
  }

  // The state of a node up to its position, as fetched.
  struct State {
    Applied base;
    Index first = 0;
    std::vector<Entry> entries = {};
    NodeState state;
  };
  State state_of(NodeId id) {
    Machine& machine = of(id);
    const Node& source = *machine.node;
    const Index last = source.applicable() - machine.behind;
    State state{.base = {.index = last,
                         .term = source.log().term_of(last),
                         .chain = source.chains().at(last)},
                .first = source.log().first(),
                .state = *load_node_state(machine.disk).value()};
    for (Index i = state.first; i <= last; ++i) state.entries.push_back(source.log().at(i));
    return state;
  }
  void restart_with(NodeId id, const State& fetched) {
    Machine& machine = of(id);
    NodeState state = *load_node_state(machine.disk).value();
    state.configuration = fetched.state.configuration;
    state.configuration_index = fetched.state.configuration_index;
    machine.node.reset();
    machine.disk = journal::TestDisk();
    // The frames under way are lost.
    frames.clear();
    for (Machine& each : machines) each.host.sent.clear();
    NullRaftLogHost host;
    auto log = RaftLog::open(machine.disk, host, log_options());
    REQUIRE((*log)->reset(fetched.first - 1).ok());
    (*log)->append(fetched.first, fetched.entries);
    bool closed = false;
    (*log)->close([&] { closed = true; });
    for (int i = 0; i < 100 && !closed; ++i) {
      (*log)->flush();
      machine.disk.run_all();
    }
    REQUIRE(closed);
    REQUIRE(store_node_state(machine.disk, state).ok());
    log->reset();
    start(id, fetched.base);
  }

  NodeOptions options;
  Time now{1h};
  std::deque<Machine> machines;
  std::multimap<Time, std::pair<NodeId, std::string>> frames;

 private:
  void notice(Machine& machine, const std::string& frame) {
    const auto message = decode(frame);
    if (message && message->type != MessageType::append) return;
    machine.longest = std::max(machine.longest, now - machine.heard);
    machine.heard = now;
    std::uint64_t bytes = 0;
    if (message) {
      for (const Entry& entry : message->entries) bytes += record_bytes(entry);
    }
    machine.most_sent = std::max(machine.most_sent, bytes);
    machine.sent += bytes;
  }
};

}  // namespace tubed::cluster
