// Three cores in memory, with virtual time and a network that loses only what a test cuts off. The
// simulation of whole nodes tests their behaviour under faults.
#include "cluster/core.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

constexpr unsigned kElection = 300;
constexpr unsigned kHeartbeat = 30;

struct Entry {
  std::uint64_t term = 0;
  int type = CORE_COMMAND;
  std::string data;

  bool operator==(const Entry&) const = default;
};

struct Member {
  std::uint64_t id;
  int role;
  std::string address{};  // empty: made of the id
};

std::string encoded(const std::vector<Member>& members) {
  std::vector<std::string> addresses;
  for (const Member& member : members)
    addresses.push_back(member.address.empty() ? "node-" + std::to_string(member.id)
                                               : member.address);
  std::vector<core_member> list;
  for (std::size_t i = 0; i < members.size(); ++i)
    list.push_back({members[i].id, members[i].role, addresses[i].c_str()});
  void* data = nullptr;
  std::size_t bytes = 0;
  REQUIRE(core_encode(list.data(), static_cast<unsigned>(list.size()), &data, &bytes) == 0);
  std::string result(static_cast<const char*>(data), bytes);
  core_free(data);
  return result;
}

std::vector<core_entry> as_core(const std::vector<Entry>& entries) {
  std::vector<core_entry> result;
  for (const Entry& entry : entries)
    result.push_back({entry.term, entry.type, entry.data.data(), entry.data.size()});
  return result;
}

struct FreeCore {
  void operator()(tubed_core* core) const { core_destroy(core); }
};
using Core = std::unique_ptr<tubed_core, FreeCore>;

Core make_core(std::uint64_t id) {
  const core_settings settings{.id = id,
                               .seed = static_cast<unsigned>(id * 7919),
                               .election_timeout_ms = kElection,
                               .heartbeat_ms = kHeartbeat,
                               .max_inflight = 32};
  return Core(core_create(&settings));
}

struct Message {
  core_message message;
  std::uint64_t from = 0;
  std::vector<Entry> entries;
};

// A core with its disk, which stores everything at once.
struct Node {
  std::uint64_t id = 0;
  Core core;
  std::uint64_t term = 0;  // durable
  std::uint64_t vote = 0;
  std::uint64_t first = 1;  // of the log
  std::vector<Entry> log;
  std::uint64_t committed = 0;
  std::uint64_t base = 0;  // the state has everything up to here
  std::uint64_t base_term = 0;
  std::string configuration;  // in force at `base`
  std::uint64_t configuration_index = 0;
  std::uint64_t barriers = 0;
  std::uint64_t timeouts = 0;
  bool is_fetched = false;  // the leader has told it to fetch a state

  std::uint64_t last() const { return first + log.size() - 1; }
  const Entry& at(std::uint64_t index) const { return log.at(index - first); }
  std::uint64_t term_of(std::uint64_t index) const {
    return index >= first && index <= last() ? at(index).term : base_term;
  }
};

class Cluster {
 public:
  std::uint64_t now = 1000;
  std::map<std::uint64_t, Node> nodes;
  std::set<std::uint64_t> unreachable;

  explicit Cluster(const std::vector<Member>& members) {
    const Entry change{.term = 1, .type = CORE_CHANGE, .data = encoded(members)};
    for (const Member& member : members) {
      Node& node = add(member.id);
      node.term = 1;
      node.log = {change};
      start(node);
    }
  }

  Node& add(std::uint64_t id) {
    Node& node = nodes[id];
    node.id = id;
    return node;
  }

  // Starts or restarts a node: it then knows only what is durable.
  void start(Node& node) {
    node.core = make_core(node.id);
    REQUIRE(node.core != nullptr);
    node.committed = node.base;
    const auto entries = as_core(node.log);
    const core_base base{.time = now,
                         .term = node.term,
                         .voted_for = node.vote,
                         .index = node.base,
                         .index_term = node.base_term,
                         .configuration = node.configuration.data(),
                         .configuration_bytes = node.configuration.size(),
                         .configuration_index = node.configuration_index,
                         .first = node.first,
                         .entries = entries.data(),
                         .n_entries = static_cast<unsigned>(entries.size())};
    const core_update* update = nullptr;
    const int code = core_start(node.core.get(), &base, &update);
    REQUIRE_MESSAGE(code == 0, core_error(code));
    handle(node, *update, {});
  }

  Node* leader() {
    for (auto& [id, node] : nodes) {
      if (node.core && core_state(node.core.get()) == CORE_LEADER && !unreachable.contains(id))
        return &node;
    }
    return nullptr;
  }

  Node& elected() {
    run(20 * kElection, [this] { return leader() != nullptr; });
    REQUIRE(leader() != nullptr);
    return *leader();
  }

  // Runs until `done`, or for this many milliseconds.
  template <typename Done>
  bool run(std::uint64_t milliseconds, Done done) {
    for (const std::uint64_t end = now + milliseconds; now < end; ++now) {
      deliver();
      for (auto& [id, node] : nodes) {
        if (!node.core || core_deadline(node.core.get()) > now) continue;
        ++node.timeouts;
        const core_update* update = nullptr;
        REQUIRE(core_timeout(node.core.get(), now, &update) == 0);
        handle(node, *update, {});
      }
      deliver();
      if (done()) return true;
    }
    return false;
  }
  void run(std::uint64_t milliseconds) {
    run(milliseconds, [] { return false; });
  }

  int submit(Node& node, const std::vector<Entry>& entries) {
    const auto list = as_core(entries);
    const core_update* update = nullptr;
    const int code =
        core_submit(node.core.get(), now, list.data(), static_cast<unsigned>(list.size()), &update);
    if (code == 0) handle(node, *update, entries);
    return code;
  }
  int submit(Node& node, std::string data) {
    return submit(node, {{.term = core_term(node.core.get()), .data = std::move(data)}});
  }
  int change(Node& node, const std::vector<Member>& members) {
    return submit(
        node,
        {{.term = core_term(node.core.get()), .type = CORE_CHANGE, .data = encoded(members)}});
  }

  template <typename Step>
  int step(Node& node, Step step) {
    const core_update* update = nullptr;
    const int code = step(node.core.get(), &update);
    if (code == 0) handle(node, *update, {});
    return code;
  }

  void cut(Node& node, std::uint64_t index, unsigned trailing) {
    for (std::uint64_t i = node.first; i <= index; ++i) {
      if (node.at(i).type != CORE_CHANGE) continue;
      node.configuration = node.at(i).data;
      node.configuration_index = i;
    }
    REQUIRE(step(node, [&](tubed_core* core, const core_update** update) {
              return core_cut(core, now, index, node.term_of(index), trailing,
                              node.configuration.data(), node.configuration.size(),
                              node.configuration_index, update);
            }) == 0);
    node.base_term = node.term_of(index);
    node.base = index;
    if (index > trailing && index - trailing >= node.first) {
      const auto cut = index - trailing - node.first + 1;
      node.log.erase(node.log.begin(), node.log.begin() + static_cast<std::ptrdiff_t>(cut));
      node.first += cut;
    }
  }

  // Checks that every running member has the same entries, apart from a beginning that its log
  // lacks, and knows them as committed. A spare is not even sent the change that made it a spare.
  void check_equal() {
    run(4 * kElection);
    const Node& first = elected();
    std::vector<core_member> members(core_members(first.core.get(), nullptr, 0));
    core_members(first.core.get(), members.data(), static_cast<unsigned>(members.size()));
    for (const core_member& member : members) {
      const auto id = member.id;
      const auto found = nodes.find(id);
      if (found == nodes.end() || unreachable.contains(id) || member.role == CORE_SPARE) continue;
      const Node& node = found->second;
      CAPTURE(id);
      CHECK(node.last() == first.last());
      CHECK(node.committed == first.last());
      for (auto i = std::max(first.first, node.first); i <= std::min(first.last(), node.last());
           ++i)
        CHECK(node.at(i) == first.at(i));
    }
  }

 private:
  void handle(Node& node, const core_update& update, const std::vector<Entry>& given) {
    if (update.vote_changed != 0) {
      node.term = core_term(node.core.get());
      node.vote = core_voted_for(node.core.get());
    }
    std::uint64_t stored = 0;
    if (update.first != 0) {
      REQUIRE(update.first <= node.last() + 1);
      REQUIRE(update.first > node.committed);
      node.log.resize(update.first - node.first);
      if (update.barrier != 0) {
        REQUIRE(update.n_entries == 1);
        ++node.barriers;
        node.log.push_back({.term = core_term(node.core.get()),
                            .type = CORE_BARRIER,
                            .data = std::string(8, '\0')});
      } else {
        REQUIRE(update.n_entries <= given.size());
        node.log.insert(node.log.end(), given.end() - update.n_entries, given.end());
      }
      stored = node.last();
    }
    for (unsigned i = 0; i < update.n_messages; ++i) {
      Message message{.message = update.messages[i], .from = node.id, .entries = {}};
      if (message.message.type == CORE_APPEND && message.message.n_entries > 0) {
        REQUIRE(message.message.index + 1 >= node.first);
        for (unsigned j = 1; j <= message.message.n_entries; ++j)
          message.entries.push_back(node.at(message.message.index + j));
      }
      network_.push_back(std::move(message));
    }
    while (node.committed < core_commit(node.core.get())) {
      const std::uint64_t index = ++node.committed;
      if (index < node.first || node.at(index).type != CORE_CHANGE) continue;
      const std::string data = node.at(index).data;
      REQUIRE(step(node, [&](tubed_core* core, const core_update** result) {
                return core_configuration(core, now, index, data.data(), data.size(), result);
              }) == 0);
    }
    if (stored > 0) {
      REQUIRE(step(node, [&](tubed_core* core, const core_update** result) {
                return core_persisted(core, now, stored, result);
              }) == 0);
    }
  }

  void deliver() {
    while (!network_.empty()) {
      const Message message = std::move(network_.front());
      network_.pop_front();
      const auto to = nodes.find(message.message.peer);
      if (to == nodes.end() || !to->second.core || unreachable.contains(to->first) ||
          unreachable.contains(message.from))
        continue;
      receive(to->second, message);
    }
  }

  void receive(Node& node, const Message& message) {
    if (message.message.type == CORE_FETCH) {
      node.is_fetched = true;
      return;
    }
    core_message event = message.message;
    event.peer = message.from;
    std::size_t done = 0;
    do {
      std::size_t end = std::min(done + 1, message.entries.size());
      while (end < message.entries.size() && message.entries[end].type != CORE_CHANGE) ++end;
      const std::vector<Entry> part(message.entries.begin() + static_cast<std::ptrdiff_t>(done),
                                    message.entries.begin() + static_cast<std::ptrdiff_t>(end));
      const auto entries = as_core(part);
      event.entries = entries.data();
      event.n_entries = static_cast<unsigned>(entries.size());
      const core_update* update = nullptr;
      const int code = core_receive(node.core.get(), now, &event, &update);
      REQUIRE_MESSAGE(code == 0, core_error(code));
      handle(node, *update, part);
      event.index += part.size();
      if (!part.empty()) event.log_term = part.back().term;
      done = end;
    } while (done < message.entries.size());
  }

  std::deque<Message> network_;
};

const std::vector<Member> kThree{{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}};

Node& follower(Cluster& cluster) {
  const auto leader = cluster.elected().id;
  for (auto& [id, node] : cluster.nodes) {
    if (id != leader && core_role(node.core.get()) == CORE_VOTER) return node;
  }
  FAIL("no follower");
  return cluster.nodes.at(leader);
}

TEST_CASE("three cores elect a leader, and replicate") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  const auto term = core_term(leader.core.get());
  CHECK(core_leader(leader.core.get()) == leader.id);
  for (int i = 0; i < 100; ++i) REQUIRE(cluster.submit(leader, "job " + std::to_string(i)) == 0);
  // Several entries in one call.
  std::vector<Entry> many(50, {.term = term, .type = CORE_COMMAND, .data = "x"});
  REQUIRE(cluster.submit(leader, many) == 0);
  cluster.check_equal();
  CHECK(leader.last() == 151);
  CHECK(core_leader(follower(cluster).core.get()) == leader.id);
  CHECK(core_term(leader.core.get()) == term);
  std::uint64_t match = 0;
  CHECK(core_match(leader.core.get(), follower(cluster).id, &match) == 0);
  CHECK(match == 151);
  CHECK(core_match(leader.core.get(), 9, &match) == CORE_REFUSED);
  CHECK(core_match(follower(cluster).core.get(), leader.id, &match) == CORE_REFUSED);
}

TEST_CASE("a single voter leads at once") {
  Cluster cluster({{1, CORE_VOTER}});
  Node& node = cluster.nodes.at(1);
  CHECK(core_state(node.core.get()) == CORE_LEADER);
  REQUIRE(cluster.submit(node, "job") == 0);
  CHECK(core_commit(node.core.get()) == 2);
  cluster.start(node);
  CHECK(core_state(node.core.get()) == CORE_LEADER);
  CHECK(core_commit(node.core.get()) == 2);
}

TEST_CASE("a new leader commits the entries of the old leader with its own barrier") {
  Cluster cluster(kThree);
  Node& old = cluster.elected();
  REQUIRE(cluster.submit(old, "replicated, and not known as committed") == 0);
  cluster.run(1);
  const auto last = old.last();
  cluster.unreachable = {old.id};
  // Never replicated, so replaced later.
  REQUIRE(cluster.submit(old, "lost") == 0);
  Node& next = cluster.elected();
  CHECK(next.id != old.id);
  CHECK(next.last() >= last);
  REQUIRE(cluster.submit(next, "new") == 0);
  cluster.unreachable.clear();
  cluster.check_equal();
  for (auto& [id, node] : cluster.nodes) {
    CHECK(std::ranges::none_of(node.log, [](const Entry& entry) { return entry.data == "lost"; }));
  }
  CHECK(core_state(old.core.get()) == CORE_FOLLOWER);
}

TEST_CASE("leadership is transferred") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  REQUIRE(cluster.submit(leader, "job") == 0);
  cluster.check_equal();
  Node& target = follower(cluster);
  const auto transfer = [&](Node& node, std::uint64_t to) {
    return cluster.step(node, [&](tubed_core* core, const core_update** update) {
      return core_transfer(core, cluster.now, to, update);
    });
  };
  CHECK(transfer(target, leader.id) == CORE_REFUSED);
  CHECK(transfer(leader, leader.id) == CORE_REFUSED);
  CHECK(transfer(leader, 9) == CORE_REFUSED);
  const auto begin = cluster.now;
  REQUIRE(transfer(leader, target.id) == 0);
  CHECK(core_transferee(leader.core.get()) == target.id);
  CHECK(core_leader(leader.core.get()) == 0);
  CHECK(cluster.submit(leader, "refused") == CORE_REFUSED);
  CHECK(cluster.run(kElection, [&] { return core_state(target.core.get()) == CORE_LEADER; }));
  CHECK(cluster.now - begin < kHeartbeat);
  REQUIRE(cluster.submit(target, "job") == 0);
  cluster.check_equal();
}

TEST_CASE("a transfer to a node that does not answer is given up") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  cluster.check_equal();
  Node& target = follower(cluster);
  cluster.unreachable = {target.id};
  REQUIRE(cluster.step(leader, [&](tubed_core* core, const core_update** update) {
    return core_transfer(core, cluster.now, target.id, update);
  }) == 0);
  CHECK(cluster.run(3 * kElection, [&] { return core_transferee(leader.core.get()) == 0; }));
  CHECK(core_state(leader.core.get()) == CORE_LEADER);
  CHECK(cluster.submit(leader, "job") == 0);
}

TEST_CASE("cut entries are fetched") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  Node& late = follower(cluster);
  cluster.check_equal();
  cluster.unreachable = {late.id};
  for (int i = 0; i < 100; ++i) REQUIRE(cluster.submit(leader, "job " + std::to_string(i)) == 0);
  cluster.run(kElection);
  cluster.cut(leader, 90, 10);
  CHECK(leader.first == 81);
  const std::string& configuration = leader.configuration;
  // A cut must not be repeated, go back, or include uncommitted entries.
  for (const std::uint64_t index : {90U, 50U, 1000U}) {
    CAPTURE(index);
    CHECK(cluster.step(leader, [&](tubed_core* core, const core_update** update) {
      return core_cut(core, cluster.now, index, 1, 10, configuration.data(), configuration.size(),
                      1, update);
    }) == CORE_MALFORMED);
  }
  cluster.unreachable.clear();
  REQUIRE(cluster.run(5 * kElection, [&] { return late.is_fetched; }));
  // It takes the leader's state and the entries around it, and starts with them.
  late.log = leader.log;
  late.first = leader.first;
  late.base = leader.base;
  late.base_term = leader.base_term;
  late.configuration = leader.configuration;
  late.configuration_index = leader.configuration_index;
  cluster.start(late);
  CHECK(core_commit(late.core.get()) == 90);
  REQUIRE(cluster.submit(leader, "job") == 0);
  cluster.check_equal();
  cluster.cut(leader, 95, 10);
  cluster.cut(leader, 96, 0);
  CHECK(leader.first == 97);
  cluster.check_equal();
}

TEST_CASE("all nodes restart from a state and the entries around it") {
  Cluster cluster(kThree);
  for (int round = 0; round < 3; ++round) {
    Node& leader = cluster.elected();
    for (int i = 0; i < 50; ++i) REQUIRE(cluster.submit(leader, "job") == 0);
    cluster.check_equal();
    for (auto& [id, node] : cluster.nodes) {
      cluster.cut(node, leader.last() - 20, static_cast<unsigned>(id) * 4);
      cluster.start(node);
      CHECK(core_term(node.core.get()) == node.term);
    }
    cluster.check_equal();
  }
}

TEST_CASE("a node joins, catches up and becomes a voter, and another node leaves") {
  Cluster cluster(kThree);
  Node* leader = &cluster.elected();
  for (int i = 0; i < 200; ++i) REQUIRE(cluster.submit(*leader, "job") == 0);
  cluster.check_equal();
  Node& joins = cluster.add(4);
  cluster.start(joins);
  CHECK(core_role(joins.core.get()) == -1);
  auto members = kThree;
  members.push_back({4, CORE_SPARE});
  REQUIRE(cluster.change(*leader, members) == 0);
  // Only one change at a time.
  members.back().role = CORE_STANDBY;
  CHECK(cluster.change(*leader, members) == CORE_REFUSED);
  cluster.run(kHeartbeat);
  CHECK(joins.last() == 0);  // a spare is sent nothing
  const auto catch_up = [&](Node& node, std::uint64_t id) {
    return cluster.step(node, [&](tubed_core* core, const core_update** update) {
      return core_catch_up(core, cluster.now, id, update);
    });
  };
  const auto status = [&] {
    int result = CORE_CATCH_UP_NONE;
    CHECK(core_catch_up_status(leader->core.get(), 4, &result) == 0);
    return result;
  };
  CHECK(status() == CORE_CATCH_UP_NONE);
  CHECK(catch_up(follower(cluster), 4) == CORE_REFUSED);
  CHECK(catch_up(*leader, 9) == CORE_REFUSED);
  CHECK(catch_up(*leader, leader->id) == CORE_REFUSED);
  REQUIRE(catch_up(*leader, 4) == 0);
  CHECK(catch_up(*leader, 4) == CORE_REFUSED);
  CHECK(status() == CORE_CATCH_UP_RUNNING);
  REQUIRE(cluster.run(5000, [&] { return status() == CORE_CATCH_UP_FINISHED; }));
  members.back().role = CORE_VOTER;
  REQUIRE(cluster.change(*leader, members) == 0);
  cluster.check_equal();
  CHECK(core_role(joins.core.get()) == CORE_VOTER);

  // The leader itself leaves: it leads until the change is committed.
  const auto gone = leader->id;
  std::erase_if(members, [&](const Member& member) { return member.id == gone; });
  REQUIRE(cluster.change(*leader, members) == 0);
  cluster.run(kHeartbeat);
  CHECK(core_state(leader->core.get()) == CORE_FOLLOWER);
  cluster.unreachable = {gone};
  leader = &cluster.elected();
  CHECK(leader->id != gone);
  std::vector<core_member> list(core_members(leader->core.get(), nullptr, 0));
  REQUIRE(core_members(leader->core.get(), list.data(), 3) == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(list[i].id == members[i].id);
    CHECK(list[i].role == CORE_VOTER);
    CHECK(list[i].address == "node-" + std::to_string(members[i].id));
  }
  REQUIRE(cluster.submit(*leader, "job") == 0);
  cluster.check_equal();
}

TEST_CASE("an uncommitted change is undone with its entry") {
  Cluster cluster(kThree);
  Node& old = cluster.elected();
  cluster.check_equal();
  cluster.unreachable = {old.id};
  auto members = kThree;
  members.push_back({4, CORE_SPARE});
  REQUIRE(cluster.change(old, members) == 0);
  CHECK(core_members(old.core.get(), nullptr, 0) == 4);
  REQUIRE(cluster.submit(cluster.elected(), "job") == 0);
  cluster.unreachable.clear();
  cluster.check_equal();
  CHECK(core_members(old.core.get(), nullptr, 0) == 3);
}

TEST_CASE("members that are sent nothing do not keep the leader busy") {
  auto members = kThree;
  members.push_back({4, CORE_STANDBY});
  Cluster cluster(members);
  Node& leader = cluster.elected();
  cluster.check_equal();
  members.back().role = CORE_SPARE;
  REQUIRE(cluster.change(leader, members) == 0);
  cluster.run(kElection);
  const auto before = leader.timeouts;
  cluster.run(100 * kHeartbeat);
  CHECK(leader.timeouts - before < 250);
  CHECK(cluster.leader() == &leader);
  REQUIRE(cluster.submit(leader, "job") == 0);
  cluster.check_equal();
}

TEST_CASE("a leader without a majority steps down") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  cluster.check_equal();
  for (const auto& [id, node] : cluster.nodes) {
    if (id != leader.id) cluster.unreachable.insert(id);
  }
  CHECK(cluster.run(3 * kElection, [&] { return core_state(leader.core.get()) != CORE_LEADER; }));
  CHECK(cluster.submit(leader, "refused") == CORE_REFUSED);
  cluster.unreachable.clear();
  cluster.check_equal();
}

// Fills the stack that the next function will use.
[[gnu::noinline]] void fill_stack() {
  std::array<volatile unsigned char, 16384> bytes;
  for (volatile unsigned char& byte : bytes) byte = 0xa5;
}

// libraft does not set the index of this answer. The caller must send no bytes of its stack.
TEST_CASE("the answer to a former leader has no index") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  cluster.check_equal();
  Node& node = follower(cluster);
  core_message append{};
  append.type = CORE_APPEND;
  append.peer = leader.id;
  append.term = core_term(node.core.get()) - 1;
  append.index = node.last();
  append.log_term = append.term;
  REQUIRE(append.term > 0);
  for (int i = 0; i < 3; ++i) {
    const core_update* update = nullptr;
    fill_stack();
    REQUIRE(core_receive(node.core.get(), cluster.now, &append, &update) == 0);
    REQUIRE(update->n_messages == 1);
    CHECK(update->messages[0].type == CORE_APPEND_RESULT);
    CHECK(update->messages[0].term == append.term + 1);
    CHECK(update->messages[0].rejected == append.index);
    CHECK(update->messages[0].index == 0);
  }
}

TEST_CASE("only single changes that keep the order are accepted") {
  Cluster cluster({{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_STANDBY}});
  Node& leader = cluster.elected();
  cluster.check_equal();
  const auto last = leader.last();
  const std::vector<std::vector<Member>> refused{
      {{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_STANDBY}},  // no change
      {{2, CORE_VOTER}, {1, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_STANDBY}},
      {{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {5, CORE_STANDBY}},  // two changes
      {{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_STANDBY}, {4, CORE_VOTER}},
      {{1, CORE_VOTER}, {2, CORE_VOTER}},
      {{2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_VOTER}},
      {{1, CORE_VOTER}, {2, CORE_VOTER}, {4, CORE_STANDBY}, {3, CORE_VOTER}, {5, CORE_SPARE}},
      {{1, CORE_SPARE}, {2, CORE_SPARE}, {3, CORE_SPARE}, {4, CORE_SPARE}},
  };
  for (const auto& members : refused) {
    CAPTURE(encoded(members));
    CHECK(cluster.change(leader, members) == CORE_MALFORMED);
  }
  // Not together with other entries, and not of another term.
  const auto term = core_term(leader.core.get());
  const auto good = encoded({{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_VOTER}});
  CHECK(cluster.submit(leader, {{.term = term, .type = CORE_COMMAND, .data = "x"},
                                {.term = term, .type = CORE_CHANGE, .data = good}}) ==
        CORE_MALFORMED);
  CHECK(cluster.submit(leader, {{.term = term - 1, .type = CORE_COMMAND, .data = "x"}}) ==
        CORE_MALFORMED);
  CHECK(cluster.submit(leader, std::vector<Entry>{}) == CORE_MALFORMED);
  CHECK(leader.last() == last);
  for (const auto& members : std::vector<std::vector<Member>>{
           {{5, CORE_SPARE}, {1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_STANDBY}},
           {{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}, {4, CORE_STANDBY}},
           {{1, CORE_VOTER}, {2, CORE_VOTER}, {3, CORE_VOTER}},
           {{1, CORE_VOTER}, {2, CORE_VOTER, "elsewhere"}, {3, CORE_VOTER}},
           {{1, CORE_VOTER, "away"}, {2, CORE_VOTER, "elsewhere"}, {3, CORE_VOTER}},
       }) {
    CAPTURE(encoded(members));
    CHECK(cluster.change(leader, members) == 0);
    cluster.run(kHeartbeat);
  }
  // The addresses of two members are two changes.
  CHECK(cluster.change(leader, {{1, CORE_VOTER, "x"}, {2, CORE_VOTER, "y"}, {3, CORE_VOTER}}) ==
        CORE_MALFORMED);
  cluster.check_equal();
}

TEST_CASE("damaged configurations are refused") {
  const auto good = encoded(kThree);
  core_member members[3];
  unsigned n = 0;
  REQUIRE(core_decode(good.data(), good.size(), members, 3, &n) == 0);
  CHECK(n == 3);
  CHECK(members[2].id == 3);
  CHECK(members[2].role == CORE_VOTER);
  CHECK(std::string_view(members[2].address) == "node-3");
  // The end is padding.
  for (std::size_t length = 0; length < good.size(); ++length) {
    // A separate copy, to detect reads beyond it.
    const std::unique_ptr<char[]> copy(new char[length]);
    std::copy_n(good.begin(), length, copy.get());
    const int code = core_decode(copy.get(), length, members, 3, &n);
    if (length <= 9 + 3 * 16 - 1) CHECK(code == CORE_MALFORMED);
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char bits : {'\x01', '\x80', '\xff'}) {
      auto bad = good;
      bad[i] = static_cast<char>(bad[i] ^ bits);
      static_cast<void>(core_decode(bad.data(), bad.size(), members, 3, &n));
    }
  }
  void* data = nullptr;
  std::size_t bytes = 0;
  for (const auto& list : std::vector<std::vector<core_member>>{
           {},
           {{0, CORE_VOTER, "a"}},
           {{1, CORE_VOTER, ""}},
           {{1, 3, "a"}},
           {{1, CORE_VOTER, "a"}, {1, CORE_VOTER, "b"}},
           {{1, CORE_VOTER, "a"}, {2, CORE_VOTER, "a"}},
       }) {
    CHECK(core_encode(list.data(), static_cast<unsigned>(list.size()), &data, &bytes) ==
          CORE_MALFORMED);
  }
}

TEST_CASE("impossible messages are refused, and change nothing") {
  Cluster cluster(kThree);
  Node& leader = cluster.elected();
  cluster.check_equal();
  Node& node = follower(cluster);
  const auto term = core_term(node.core.get());
  const auto last = node.last();
  const auto last_term = node.at(last).term;
  const auto refused = [&](Node& to, const core_message& message) {
    const core_update* update = nullptr;
    const int code = core_receive(to.core.get(), cluster.now, &message, &update);
    CHECK(update->first == 0);
    CHECK(update->n_messages == 0);
    return code == CORE_MALFORMED;
  };
  core_message good{};
  good.type = CORE_APPEND;
  good.peer = leader.id;
  good.term = term;
  good.index = last;
  good.log_term = last_term;
  const auto with = [&](auto change) {
    core_message bad = good;
    change(bad);
    return bad;
  };
  CHECK(refused(node, with([](auto& bad) { bad.type = 0; })));
  CHECK(refused(node, with([](auto& bad) { bad.type = 7; })));
  CHECK(refused(node, with([](auto& bad) { bad.type = CORE_FETCH; })));
  CHECK(refused(node, with([](auto& bad) { bad.peer = 0; })));
  CHECK(refused(node, with([&](auto& bad) { bad.peer = node.id; })));
  CHECK(refused(node, with([](auto& bad) { bad.term = 0; })));
  CHECK(refused(node, with([](auto& bad) { bad.index = 0; })));
  CHECK(refused(node, with([](auto& bad) { bad.log_term = 0; })));
  CHECK(refused(node, with([](auto& bad) { bad.log_term = bad.term + 1; })));
  CHECK(refused(leader, with([&](auto& bad) { bad.peer = node.id; })));  // two leaders in a term
  const std::string configuration = encoded(kThree);
  const core_entry command{term, CORE_COMMAND, nullptr, 0};
  const core_entry change{term, CORE_CHANGE, configuration.data(), configuration.size()};
  const std::vector<std::vector<core_entry>> lists{
      {{0, CORE_COMMAND, nullptr, 0}},
      {{term + 1, CORE_COMMAND, nullptr, 0}},
      {{last_term - 1, CORE_COMMAND, nullptr, 0}},
      {{term, 0, nullptr, 0}},
      {{term, 4, nullptr, 0}},
      {{term, CORE_CHANGE, nullptr, 0}},
      {{term, CORE_CHANGE, configuration.data(), 10}},
      {command, change},
  };
  for (const auto& list : lists) {
    CAPTURE(&list - lists.data());
    CHECK(refused(node, with([&](auto& bad) {
                    bad.entries = list.data();
                    bad.n_entries = static_cast<unsigned>(list.size());
                  })));
  }
  CHECK(core_last(node.core.get()) == last);
  CHECK(core_term(node.core.get()) == term);

  // The result of a vote that arrives late has no effect, whatever it is.
  core_message result{};
  result.type = CORE_VOTE_RESULT;
  result.peer = node.id;
  result.term = term + 5;
  result.granted = 1;
  REQUIRE(cluster.step(leader, [&](tubed_core* core, const core_update** update) {
    return core_receive(core, cluster.now, &result, update);
  }) == 0);
  CHECK(core_state(leader.core.get()) == CORE_LEADER);
  CHECK(core_term(leader.core.get()) == term);

  // Reports of entries already reported, and of entries that do not exist.
  const core_update* update = nullptr;
  CHECK(core_persisted(node.core.get(), cluster.now, last, &update) == 0);
  CHECK(core_persisted(node.core.get(), cluster.now, 1, &update) == 0);
  CHECK(core_persisted(node.core.get(), cluster.now, last + 1, &update) == CORE_MALFORMED);
  CHECK(core_configuration(node.core.get(), cluster.now, last + 1, configuration.data(),
                           configuration.size(), &update) == CORE_MALFORMED);
  cluster.check_equal();
}

TEST_CASE("a start from an impossible state is refused") {
  const std::string configuration = encoded(kThree);
  const core_entry change{1, CORE_CHANGE, configuration.data(), configuration.size()};
  const core_entry command{1, CORE_COMMAND, nullptr, 0};
  const std::vector<core_entry> from_start{change, command, command, command};
  const std::vector<core_entry> later{command, command};
  core_base good{.time = 1,
                 .term = 2,
                 .voted_for = 1,
                 .index = 3,
                 .index_term = 1,
                 .configuration = configuration.data(),
                 .configuration_bytes = configuration.size(),
                 .configuration_index = 1,
                 .first = 1,
                 .entries = from_start.data(),
                 .n_entries = 4};
  const auto start = [&](auto change_of) {
    core_base base = good;
    change_of(base);
    const Core core = make_core(1);
    const core_update* update = nullptr;
    return core_start(core.get(), &base, &update);
  };
  const auto entries = [](core_base& base, const std::vector<core_entry>& list,
                          std::uint64_t first) {
    base.entries = list.data();
    base.n_entries = static_cast<unsigned>(list.size());
    base.first = first;
  };
  CHECK(start([](auto&) {}) == 0);
  CHECK(start([&](auto& base) { entries(base, later, 2); }) == 0);
  CHECK(start([&](auto& base) { entries(base, later, 4); }) == 0);
  CHECK(start([&](auto& base) { entries(base, {}, 4); }) == 0);
  CHECK(start([&](auto& base) { base.index = 0; }) == 0);
  CHECK(start([](auto& base) { base = {}; }) == 0);
  CHECK(start([](auto& base) {
          base = {};
          base.term = 2;
          base.voted_for = 3;
        }) == 0);
  CHECK(start([&](auto& base) { entries(base, later, 5); }) == CORE_MALFORMED);  // a gap
  CHECK(start([&](auto& base) { entries(base, later, 1); }) == CORE_MALFORMED);  // too short
  CHECK(start([&](auto& base) { base.index_term = 2; }) == CORE_MALFORMED);      // inconsistent
  CHECK(start([&](auto& base) { base.term = 0; }) == CORE_MALFORMED);
  CHECK(start([&](auto& base) { base.configuration_index = 4; }) == CORE_MALFORMED);
  CHECK(start([&](auto& base) { base.configuration_bytes = 20; }) == CORE_MALFORMED);
  CHECK(start([&](auto& base) {
          base.index = 0;
          entries(base, later, 1);  // without a configuration
        }) == CORE_MALFORMED);
  const core_settings none{};
  CHECK(core_create(&none) == nullptr);
  core_destroy(nullptr);
}

TEST_CASE("errors have texts") {
  CHECK(std::string_view(core_error(CORE_REFUSED)) == "refused");
  CHECK(std::string_view(core_error(CORE_MALFORMED)) == "malformed");
  CHECK(std::string_view(core_error(1)) == "out of memory");
  CHECK(std::string_view(core_version()).starts_with("0.22."));
}

}  // namespace
