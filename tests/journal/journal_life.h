// JournalLife: the queue, its journal and its clients on one TestDisk, through one crash after
// another, and what has to be true when it wakes up.
//
// Each boot checks the law: the state that recovery gives is the state after some number of the
// facts told, none in the middle missing and none invented, and that number is not smaller than
// what clients were told. Beside it clients keep their own books: a job whose put was acknowledged
// is there with its body, a job whose delete was acknowledged is gone, no id comes twice.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "journal/restorer.h"
#include "tests/engine/recording.h"
#include "tests/journal/scripted_load.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

// What recovery makes of a directory, before repair().
struct Revival {
  Examined found;
  std::unique_ptr<engine::Engine> engine;
};
Result<Revival> revive(Storage& storage, const WallClock& clock, Time now);

// Equal exactly if the durable states are.
engine::Lines durable_state(const engine::Engine& engine, Time now);

// The facts told since some state, so that the state after any number of them can be built again.
class History {
 public:
  // From this state on, at which the log has that number.
  void begin(const engine::Engine& engine, Lsn lsn, const WallClock& clock, Time now);
  // `lsn` is the log's behind it.
  void add(const Fact& fact, Lsn lsn, Time now);

  Lsn first() const { return first_; }
  Lsn last() const { return facts_.empty() ? first_ : facts_.back().lsn; }
  // Precondition: `lsn` is not before first(). As a process with that clock sees it.
  std::unique_ptr<engine::Engine> state_at(Lsn lsn, const WallClock& clock, Time now) const;

 private:
  struct Told {
    engine::RecordedFact fact;
    Lsn lsn;
  };

  Lsn first_ = 0;
  WallClock clock_;
  engine::Recording before_;
  std::deque<Told> facts_;
};

// What clients know of their jobs.
class ClientBooks {
 public:
  // Replies were made when the log had that number.
  void note(const std::vector<ScriptedLoad::Told>& replies, Lsn lsn);
  // Nothing: all is as they were told, up to that number.
  std::optional<std::string> check(const engine::Engine& engine, Lsn acknowledged) const;
  // What they were not told yet is forgotten or becomes known, as the queue has it.
  void settle(const engine::Engine& engine, Lsn acknowledged);
  // What note() has found wrong.
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
    bool faulty = false;  // the journal may fail: that is no problem then
  };

  explicit JournalLife(const Nature& nature);

  TestDisk& disk() { return disk_; }
  const Journal& journal() const { return *journal_; }
  const History& history() const { return history_; }
  const WallClock& clock() const { return options_.clock; }
  Time now() const override;

  // A new process: it recovers, checks what it finds, repairs and goes on. False: the machine went
  // off meanwhile, or there is a problem.
  bool boot();
  // One turn of the loop; the disk comes as far as it comes.
  void turn();
  // The process ends in good order.
  void stop();
  // The process ends as it is.
  void crash(Fate fate);

  // What must not be, with where it happened; nothing: all is well.
  const std::optional<std::string>& problem() const { return problem_; }
  // What the disk did last, and what happened to the process.
  std::string story() const;

  void fact(const Fact& fact) override;
  void request_flush() override { moved_ = true; }
  void report_failure(const std::string& reason) override;
  void report_full(bool full, const std::string& /*reason*/) override { full_ = full; }
  void describe_job(JobId id, FactSink& sink) override { engine_->describe(now(), id, sink); }
  void describe_delay(JobId id, FactSink& sink) override {
    engine_->describe_delay(now(), id, sink);
  }
  WallClock wall_clock() const override { return options_.clock; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  void expect(bool agreed, const std::string& what);
  void check_revival(const Revival& revival);
  void check_repaired(Lsn lsn);
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
  Lsn acknowledged_ = 0;  // at the last crash
  Lsn durable_ = 0;       // as last seen
  bool stopped_in_order_ = false;
  bool moved_ = false;
  bool failed_ = false;
  bool full_ = false;
  std::optional<std::string> problem_;
  std::deque<std::string> events_;
};

}  // namespace tubed::journal
