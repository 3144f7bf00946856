// Entries of the replicated log begin between units of facts: a follower that has the log up to any
// entry has only whole changes.
#include "cluster/replicated_log.h"

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "cluster/founding.h"
#include "engine/engine.h"
#include "journal/record.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

// A single node, which leads, and its replicated log.
class Leader final : public NodeHost {
 public:
  Leader() {
    NodeOptions options;
    options.log.cluster = kIdentity;
    const Member alone{.id = 1, .role = MemberRole::voter, .address = "node 1"};
    REQUIRE(found(disk_, options.log, 1, {alone}).ok());
    auto opened = Node::open(disk_, *this, options, founding_position(kIdentity));
    REQUIRE(opened.ok());
    node_ = std::move(*opened);
    REQUIRE(node_->leads());
    log_ = std::make_unique<ReplicatedLog>(*node_, journal_, [this] { return now_; });
    seen_ = node_->log().last();
  }

  ReplicatedLog& log() { return *log_; }
  // Ends the tick and commits everything. Returns the facts of each new entry.
  std::vector<std::vector<Fact>> commit() {
    log_->flush();
    for (int i = 0; i < 5; ++i) {
      node_->tick();
      disk_.run_all();
      now_ += 1ms;
    }
    log_->committed(node_->committed());
    REQUIRE(log_->is_clean());
    std::vector<std::vector<Fact>> entries;
    while (seen_ < node_->log().last()) {
      Facts facts;
      REQUIRE(read_facts(node_->log().at(++seen_).data.view(), facts));
      entries.push_back(std::move(facts.all));
    }
    return entries;
  }

  Time clock() const override { return now_; }
  void send(NodeId /*to*/, std::string /*frame*/) override {}
  void node_changed() override {}
  void fetch_state(NodeId /*from*/) override {}
  void node_failed(const std::string& reason) override { FAIL(reason); }
  void raft_log_full(bool /*full*/, const std::string& /*reason*/) override {}

 private:
  static constexpr std::uint64_t kIdentity = 9;  // of the cluster

  struct Facts final : FactSink {
    void fact(const Fact& fact) override { all.push_back(fact); }
    std::vector<Fact> all;
  };

  Time now_{1h};
  journal::TestDisk disk_;
  NullLog journal_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<ReplicatedLog> log_;
  Index seen_ = 0;
};

// A queue whose facts go to the log of a leader.
class Queue final : public engine::Output {
 public:
  explicit Queue(ReplicatedLog& log) : log_(log) {
    engine_.recorded_reservations().record_to(&log);
  }

  JobId put(std::size_t body_bytes, const JobTags& tags) {
    const std::uint64_t memory = body_bytes + engine::tags_memory(tags);
    REQUIRE(engine_.memory().claim(static_cast<std::uint32_t>(memory)));
    const engine::PutRequest request{.priority = 9,
                                     .delay = {},
                                     .ttr = {60},
                                     .body = Bytes::copy_of(std::string(body_bytes, 'b'))};
    return engine_.put_with_tags(now_, "a", request, tags, *this).value().id;
  }
  void remove(JobId job) { REQUIRE(engine_.remove(session_, now_, job, *this)); }
  void move(JobId job) {
    const engine::NewPlace place{.priority = 1, .delay = {}};
    const auto result = engine_.tube_moves().move(session_, now_, job, "b", place, *this);
    REQUIRE(result == engine::MoveResult::moved);
  }
  void reserve(JobId job) { REQUIRE(engine_.reserve_job(session_, now_, job)); }
  void reprioritize_by_put(std::string_view key) {
    const JobTags tags{.unique_key = key};
    REQUIRE(engine_.memory().claim(engine::tags_memory(tags)));
    const engine::PutRequest request{.priority = 1, .delay = {}, .ttr = {60}, .body = {}};
    REQUIRE(engine_.put_with_tags(now_, "a", request, tags, *this));
  }

  void fact(const Fact& fact) override { log_.fact(fact); }
  void begin_unit() override { log_.begin_unit(); }
  void end_unit() override { log_.end_unit(); }
  void notice(const engine::Notice& /*notice*/) override {}

 private:
  ReplicatedLog& log_;
  engine::Engine engine_{Limits{}};
  SessionId session_ = engine_.open();
  Time now_{1h};
};

// Returns the body size of a put that leaves `gap` bytes in an otherwise empty entry.
std::size_t body_that_leaves(std::size_t gap) {
  const std::size_t others = kEntryHeaderBytes + journal::added_bytes(1, 7) - 7;
  return ReplicatedLog::kEntryBytes - gap - others;
}

}  // namespace

TEST_CASE("no entry begins within a unit of facts") {
  Leader leader;
  Queue queue(leader.log());
  std::size_t full = 0;
  for (std::size_t gap = 0; gap <= 128; gap += 8) {
    CAPTURE(gap);
    const std::string key = "removed-" + std::to_string(gap);
    const JobId removed = queue.put(0, {.unique_key = key, .cooldown = {1'000}});
    const JobId moved = queue.put(0, {});
    const JobId held = queue.put(0, {.unique_key = "held"});
    queue.reserve(held);
    leader.commit();
    // Each cause is the first after an entry that is nearly full.
    const auto remove = [&] { queue.remove(removed); };
    const auto move = [&] { queue.move(moved); };
    const auto reprioritize = [&] { queue.reprioritize_by_put("held"); };
    const auto try_after_put = [&](auto cause, std::string_view name) {
      CAPTURE(name);
      const JobId filler = queue.put(body_that_leaves(gap), {});
      cause();
      queue.remove(filler);
      const auto entries = leader.commit();
      REQUIRE(!entries.empty());
      std::size_t facts = 0;
      for (const std::vector<Fact>& entry : entries) {
        REQUIRE(!entry.empty());
        CHECK_FALSE(std::holds_alternative<Remembered>(entry.front()));
        CHECK_FALSE(std::holds_alternative<Moved>(entry.front()));
        CHECK_FALSE(std::holds_alternative<Held>(entry.front()));
        facts += entry.size();
      }
      CHECK(facts == 4);
      if (entries.size() > 1) ++full;
    };
    try_after_put(remove, "the deletion with a cooldown");
    try_after_put(move, "the move to another place");
    try_after_put(reprioritize, "the priority of a reserved job");
    queue.remove(held);
  }
  CHECK(full > 20);
}

}  // namespace tubed::cluster
