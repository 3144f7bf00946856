// JournaledQueue: an engine with a journal on a test disk, in virtual time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "journal/journal.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

class JournaledQueue final : public engine::Output, public JournalHost {
 public:
  // The start of each queue's own monotonic clock.
  static constexpr Time kStart{std::chrono::hours(1)};

  struct Settings {
    Duration sync = Duration::zero();
    std::uint64_t segment_bytes = 16 << 10;
    std::uint64_t max_bytes = 0;
    bool reservations = false;  // whether to record them
    // Wall time is far from monotonic time, to detect a confusion of the two.
    WallClock clock{std::chrono::hours(24 * 365 * 50)};
  };

  // Recovers the contents of the disk. The error comes from the recovery.
  static Result<std::unique_ptr<JournaledQueue>> open(TestDisk& disk, const Settings& settings);

  engine::Engine& engine() { return engine_; }
  Journal& journal() { return *journal_; }
  const Examined& found() const { return found_; }
  SessionId session() const { return session_; }
  Time now() const override { return now_; }
  // The number of jobs whose delay the journal has requested.
  std::uint64_t delays_asked() const { return delays_asked_; }

  // Changes options like a reload.
  void set(const Settings& settings) { journal_->set_options(options(settings)); }

  // Advances the time and does all due work, including the journal's.
  void pass(Duration duration);
  // Only advances the time; no part has noticed yet.
  void let_time_pass(Duration duration) { now_ += duration; }
  // Does all pending disk operations, without ending the tick.
  void disk_work() { disk_.run_all(); }
  // Ends the tick, then does all pending disk operations.
  void settle();

  JobId put(std::size_t body_bytes, Priority priority = 0, Seconds delay = {});
  JobId put_body(const std::string& body, Priority priority = 0, Seconds delay = {});
  // Reserves a job and returns its id, or 0 if no job is ready.
  JobId reserve();
  void remove(JobId id) { engine_.remove(session_, now_, id, *this); }

  // Returns the durable state as text without changing times, for comparisons.
  std::string state();

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  bool full() const { return full_; }
  // Whether the host describes jobs; otherwise the journal must wait.
  void set_describes(bool describes) { describes_ = describes; }

  void fact(const Fact& fact) override { journal_->fact(fact); }
  void begin_unit() override { journal_->begin_unit(); }
  void end_unit() override { journal_->end_unit(); }
  void notice(const engine::Notice& notice) override;
  void request_flush() override { moved_ = true; }
  void report_failure(const std::string& reason) override { failure_ = reason; }
  void report_full(bool full, const std::string&) override { full_ = full; }
  bool describe_job(JobId id, FactSink& sink) override {
    if (!describes_) return false;
    engine_.durable_state().describe(now_, id, sink);
    return true;
  }
  void describe_delay(JobId id, FactSink& sink) override {
    ++delays_asked_;
    engine_.durable_state().describe_delay(now_, id, sink);
  }
  WallClock wall_clock() const override { return clock_; }
  // Acts like the first tick after a step of the clock: the journal notices but has written nothing
  // yet.
  void step_clock(const WallClock& clock) {
    clock_ = clock;
    journal_->set_clock(clock);
  }

 private:
  explicit JournaledQueue(TestDisk& disk) : disk_(disk), engine_(Limits{}) {}
  static Options options(const Settings& settings);

  TestDisk& disk_;
  engine::Engine engine_;
  Examined found_;
  std::unique_ptr<Journal> journal_;
  SessionId session_ = 0;
  Time now_ = kStart;
  WallClock clock_;
  JobId reserved_ = 0;
  std::uint64_t delays_asked_ = 0;
  bool moved_ = false;
  bool full_ = false;
  bool describes_ = true;
  std::string failure_;
};

}  // namespace tubed::journal
