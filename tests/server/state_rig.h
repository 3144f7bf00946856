// Helpers for the tests of a node's state: a node that runs alone in a directory with random
// clients, and looks at directories.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "cluster/node.h"
#include "cluster/replica.h"
#include "disk/file_storage.h"
#include "engine/replay.h"
#include "journal/journal.h"
#include "journal/restorer.h"
#include "loop/timer.h"
#include "node/cluster_tasks.h"
#include "node/state_directory.h"
#include "os/clock.h"
#include "tests/journal/journal_life.h"
#include "tests/loop/loopback.h"

namespace tubed::server_test {

inline constexpr std::uint64_t kSegmentBytes = 16 << 10;

template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().message;
}

// Small files: a log has several.
inline cluster::RaftLogOptions small_raft_log() {
  cluster::RaftLogOptions options;
  options.file_bytes = 64 << 10;
  return options;
}

// The names of all files below a directory with their contents, but for locks.
inline std::map<std::string, std::string> files_below(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = std::filesystem::relative(entry.path(), directory).string();
    if (!entry.is_regular_file() || entry.path().filename() == "lock") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[name] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

inline void copy_directory(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// The journal of a directory, and the queue that it describes.
inline journal::Revival revived(const std::string& directory, Time now) {
  loop::Loop loop;
  auto storage = disk::FileStorage::open(loop, directory, disk::FileStorage::Mode::read_only);
  REQUIRE_MESSAGE(storage.ok(), error_of(storage));
  auto revival = journal::revive(**storage, {}, now);
  REQUIRE_MESSAGE(revival.ok(), error_of(revival));
  return std::move(*revival);
}

// The state of the queue in a directory.
inline engine::Lines lines_in(const std::string& directory, Time now) {
  return journal::durable_state(*revived(directory, now).engine, now);
}

// The lines that only one of the states has; empty: the states are equal.
inline std::string difference(const engine::Lines& found, const engine::Lines& expected) {
  std::string text;
  const auto add = [&text](const engine::Lines& from, const engine::Lines& less, char sign) {
    engine::Lines only;
    std::ranges::set_difference(from, less, std::back_inserter(only));
    for (const std::string& line : only) text += "\n" + (sign + line.substr(0, 200));
  };
  add(found, expected, '+');
  add(expected, found, '-');
  return text;
}

// A node that is the only voter, from its start to its end, as node/node_owner.h runs one.
class RunningNode final : public cluster::NodeHost,
                          public cluster::ReplicaHost,
                          public journal::JournalHost {
 public:
  struct Options {
    cluster::Index kept_entries = 4096;
    std::uint64_t raft_log_bytes = 1 << 30;
    std::uint32_t body_bytes = 3000;
    cluster::Level level = cluster::kFeatureLevel;  // the highest that the node knows
  };

  RunningNode(loop::Loop& loop, const std::string& directory, std::uint64_t seed)
      : RunningNode(loop, directory, seed, Options()) {}
  RunningNode(loop::Loop& loop, const std::string& directory, std::uint64_t seed,
              const Options& options)
      : loop_(loop), load_(seed, {.jobs = 25, .body_bytes = options.body_bytes}) {
    using Mode = disk::FileStorage::Mode;
    auto journal_files = disk::FileStorage::open(loop, directory, Mode::owner);
    REQUIRE_MESSAGE(journal_files.ok(), error_of(journal_files));
    journal_files_ = std::move(*journal_files);
    engine::Replay replay(engine_, now());
    journal::Restorer restorer(replay);
    auto found = journal::examine(*journal_files_, {}, restorer, nullptr);
    REQUIRE_MESSAGE(found.ok(), error_of(found));
    REQUIRE(journal::repair(*journal_files_, *found).ok());
    restorer.finish(*found);
    REQUIRE(found->applied.has_value());
    const Applied base = *found->applied;
    auto journal = journal::Journal::open(*journal_files_, *this,
                                          {.sync = std::chrono::milliseconds(20),
                                           .segment_bytes = kSegmentBytes,
                                           .clock = {},
                                           .reservations = true},
                                          std::move(*found));
    REQUIRE_MESSAGE(journal.ok(), error_of(journal));
    journal_ = std::move(*journal);
    auto raft_files =
        disk::FileStorage::open(loop, directory + "/" + node::kClusterFolder, Mode::owner);
    REQUIRE_MESSAGE(raft_files.ok(), error_of(raft_files));
    raft_files_ = std::move(*raft_files);
    cluster::NodeOptions node_options;
    node_options.kept_entries = options.kept_entries;
    node_options.level = options.level;
    node_options.log = small_raft_log();
    node_options.log.log_bytes = options.raft_log_bytes;
    auto node = cluster::Node::open(*raft_files_, *this, node_options, base);
    REQUIRE_MESSAGE(node.ok(), error_of(node));
    node_ = std::move(*node);
    replica_ = std::make_unique<cluster::Replica>(*this, *node_, *journal_, engine_, base,
                                                  cluster::Replica::Options());
    REQUIRE(run_until([this] { return replica_->serving(); }));
    load_.meet(engine_, replica_->log(), queue_time());
  }
  ~RunningNode() {
    engine_.recorded_reservations().record_to(nullptr);
    run_until([this] { return !journal_files_->busy() && !raft_files_->busy(); }, false);
  }

  cluster::Node& node() { return *node_; }
  cluster::Replica& replica() { return *replica_; }
  journal::Journal& journal() { return *journal_; }
  Time queue_time() const { return replica_->time().at(clock()); }

  // Runs random commands.
  void work(int commands) {
    for (int i = 0; i < commands; ++i) {
      load_.advance(queue_time());
      load_.step(queue_time(), nullptr);
      load_.take_replies();
      drive();
      uv_run(loop_.uv(), UV_RUN_NOWAIT);
      // Otherwise all that is written while the disk works would be one entry.
      if (i % 4 == 0) {
        REQUIRE(
            run_until([this] { return replica_->log().appended() == replica_->log().durable(); }));
      }
    }
  }
  void drive() {
    node_->tick();
    while (replica_->advance()) {
    }
    FactLog& log = replica_->serving() ? static_cast<FactLog&>(replica_->log()) : *journal_;
    log.flush();
    journal_->flush();
    replica_->advance();
  }
  // Drives the node until everything is committed, applied, and on the disk of the journal.
  void settle() {
    REQUIRE(run_until([this] {
      const FactLog& log = replica_->log();
      return log.appended() == log.durable() && replica_->applied().index == node_->log().last() &&
             journal_->synced() == journal_->appended();
    }));
  }
  // The state of the queue. Precondition: everything is committed, applied, and on the disk.
  engine::Lines lines(Time now) const { return journal::durable_state(engine_, now); }

  // Runs the loop until the condition holds. False: it did not hold within loop_test::kLastResort.
  template <class Condition>
  bool run_until(Condition condition, bool drives = true) {
    const Time deadline = clock() + loop_test::kLastResort;
    // A timer that is armed once could expire before the wait for events begins.
    loop::Timer soon(loop_, [&soon] { soon.arm(std::chrono::milliseconds(1)); });
    soon.arm(std::chrono::milliseconds(1));
    for (;;) {
      if (drives) drive();
      if (condition()) return true;
      if (clock() > deadline) return false;
      uv_run(loop_.uv(), UV_RUN_ONCE);
    }
  }

  Time clock() const override { return os::monotonic_now(); }
  void send(cluster::NodeId /*to*/, std::string /*frame*/) override {}
  void node_changed() override {}
  void fetch_state(cluster::NodeId /*from*/) override {}
  void node_failed(const std::string& reason) override { FAIL(reason); }
  void raft_log_full(bool /*full*/, const std::string& reason) override { FAIL(reason); }
  Time wall() const override { return Time(os::wall_time()); }
  void begin_serving() override {}
  void start_again() override { FAIL("leadership lost"); }
  void replica_failed(const std::string& reason) override { FAIL(reason); }
  void request_flush() override {}
  void report_failure(const std::string& reason) override { FAIL(reason); }
  void report_full(bool /*full*/, const std::string& reason) override { FAIL(reason); }
  bool describe_job(JobId id, FactSink& sink) override {
    if (replica_ == nullptr || !replica_->is_settled(id)) return false;
    engine_.durable_state().describe(replica_->applied_time(), id, sink);
    return true;
  }
  void describe_delay(JobId /*id*/, FactSink& /*sink*/) override {}
  Time now() const override { return wall(); }
  Time settled_time() const override { return replica_ ? replica_->applied_time() : Time(); }
  journal::WallClock wall_clock() const override { return {}; }

 private:
  loop::Loop& loop_;
  engine::Engine engine_{Limits{}};
  std::unique_ptr<disk::FileStorage> journal_files_;
  std::unique_ptr<disk::FileStorage> raft_files_;
  std::unique_ptr<journal::Journal> journal_;
  std::unique_ptr<cluster::Node> node_;
  std::unique_ptr<cluster::Replica> replica_;
  journal::ScriptedLoad load_;
};

// A new directory of the first node of a cluster.
inline node::Founded founded_in(const std::string& directory, const std::string& name = "a") {
  std::filesystem::create_directory(directory);
  const auto founded = node::bootstrap(directory, name, "127.0.0.1:11301", kSegmentBytes);
  REQUIRE_MESSAGE(founded.ok(), error_of(founded));
  return founded.value();
}

}  // namespace tubed::server_test
