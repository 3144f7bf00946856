// JournalLife: the queue, its journal and its clients on one TestDisk, through crash after crash,
// with the conditions that must hold after each.
//
// Each boot checks the law: the recovered state is the state after some prefix of the emitted
// facts, and the prefix contains at least the acknowledged facts. The clients keep their own
// record: a job whose put was acknowledged exists with its body, a job whose delete was
// acknowledged does not exist, and no id is used twice.
//
// No unit of facts may exist in part, and no pair of facts with one cause may be split
// (History::torn_after() knows these pairs without the units).
//
// In some lives the queue records reservations, and the facts of each command are an entry of a
// replicated log: they and their `Applied` exist together or not at all.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "journal/journal.h"
#include "journal/restorer.h"
#include "tests/engine/recording.h"
#include "tests/journal/scripted_load.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

// The result of recovery for a directory, before repair().
struct Revival {
  Examined found;
  std::unique_ptr<engine::Engine> engine;
};
Result<Revival> revive(Storage& storage, const WallClock& clock, Time now);

// Two results are equal exactly if the durable states are equal.
engine::Lines durable_state(const engine::Engine& engine, Time now);

// The facts emitted since some state. The state after any number of them can be rebuilt.
class History {
 public:
  // Starts with this state, at log position `lsn`.
  void begin(const engine::Engine& engine, Lsn lsn, const WallClock& clock, Time now);
  // `lsn` is the log position after the fact.
  void add(const Fact& fact, Lsn lsn, Time now);
  // The following facts have another cause.
  void begin_cause() { ++cause_; }
  // The facts between these positions are a unit.
  void add_unit(Lsn begin, Lsn end) { units_.emplace_back(begin, end); }
  // Returns why a log that ends at this position has half of a change, or nothing.
  std::optional<std::string> torn_after(Lsn lsn) const;

  Lsn first() const { return first_; }
  Lsn last() const { return facts_.empty() ? first_ : facts_.back().lsn; }
  // Returns the last fact before this log position, or nothing if the history has no earlier fact.
  std::optional<Fact> last_before(Lsn lsn) const;
  // Returns the state for a process with this clock. Precondition: `lsn` is not before first().
  std::unique_ptr<engine::Engine> state_at(Lsn lsn, const WallClock& clock, Time now) const;

 private:
  struct Entry {
    engine::RecordedFact fact;
    Lsn lsn;
    std::uint64_t cause;
  };

  Lsn first_ = 0;
  std::uint64_t cause_ = 0;
  std::vector<std::pair<Lsn, Lsn>> units_;
  WallClock clock_;
  engine::Recording before_;
  std::deque<Entry> facts_;
};

// The clients' own record of their jobs.
class ClientBooks {
 public:
  // `lsn` is the log position at which the replies were made.
  void note(const std::vector<ScriptedLoad::Reply>& replies, Lsn lsn);
  // Compares the queue with all changes acknowledged up to this position. Returns nothing if they
  // agree.
  std::optional<std::string> check(const engine::Engine& engine, Lsn acknowledged) const;
  // Adopts the state of the queue for changes that were not acknowledged: records or forgets them.
  void settle(const engine::Engine& engine, Lsn acknowledged);
  // Returns a fault that note() has found.
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  struct Entry {
    std::string body;
    Lsn put_at = 0;
    std::optional<Lsn> removed_at = std::nullopt;
  };

  std::map<JobId, Entry> jobs_;
  std::optional<std::string> problem_;
};

class JournalLife final : public FactSink, public JournalHost {
 public:
  struct Nature {
    std::uint64_t seed = 0;
    Duration sync{};
    std::uint64_t segment_bytes = 4096;
    std::uint64_t max_bytes = 0;
    ScriptedLoad::Habits habits;
    bool shuffled = false;
    bool faulty = false;  // a failure of the journal is not a problem
    bool entries = false;
  };

  explicit JournalLife(const Nature& nature);

  TestDisk& disk() { return disk_; }
  const Journal& journal() const { return *journal_; }
  const History& history() const { return history_; }
  const WallClock& clock() const { return options_.clock; }
  Time now() const override;

  // Starts a new process: it recovers, checks the result, repairs the directory and serves. Returns
  // false if the machine was switched off meanwhile or a problem was found.
  bool boot();
  // Runs one tick of the loop; the disk does a random part of its operations.
  void tick();
  // Ends the process properly.
  void stop();
  // Ends the process at once.
  void crash(Fate fate);

  // Returns a violated condition and where it was found, or nothing.
  const std::optional<std::string>& problem() const { return problem_; }
  // Returns the last operations of the disk and events of the process.
  std::string story() const;

  void fact(const Fact& fact) override;
  void begin_unit() override;
  void end_unit() override;
  void request_flush() override { moved_ = true; }
  void report_failure(const std::string& reason) override;
  void report_full(bool full, const std::string& /*reason*/) override { full_ = full; }
  bool describe_job(JobId id, FactSink& sink) override {
    if (nature_.entries && below(4) == 0) return false;
    engine_->durable_state().describe(now(), id, sink);
    return true;
  }
  void describe_delay(JobId id, FactSink& sink) override {
    engine_->durable_state().describe_delay(now(), id, sink);
  }
  WallClock wall_clock() const override { return options_.clock; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  void expect(bool agreed, const std::string& what);
  void check_revival(const Revival& revival);
  void check_repaired(Lsn lsn);
  void check_entries(const Examined& found);
  void append(const Fact& fact);
  void end_entry();
  void end_tick();
  void do_disk_work(std::uint64_t operations);
  void watch_durable();
  void remember(const std::string& event);

  Nature nature_;
  Random random_;
  Options options_;
  TestDisk disk_;
  std::int64_t wall_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Journal> journal_;
  ScriptedLoad load_;
  History history_;
  ClientBooks books_;
  std::vector<OwnedFact> entry_;  // facts of the current command
  Applied applied_;               // of the last entry
  Lsn acknowledged_ = 0;          // at the last crash
  Lsn durable_ = 0;               // as last seen
  Lsn unit_begin_ = 0;            // start of the open unit
  bool stopped_in_order_ = false;
  bool moved_ = false;
  bool failed_ = false;
  bool full_ = false;
  std::optional<std::string> problem_;
  std::deque<std::string> events_;
};

}  // namespace tubed::journal
