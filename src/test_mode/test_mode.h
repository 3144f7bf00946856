// TestMode: the additions of a server for test suites: a clock that is moved by command, events,
// faults and snapshots.
//
// The queue is the same as in any other server. The service calls TestMode at these places:
//
// - command_for() gives each line its row: a test verb, or an observed row of the command table
//   (test_mode/table.h), whose functions call run() and begin_body().
// - tick_began() gives the time of the queue, and next_deadlines() the timers of the server.
// - fact(), notice() and retired() record what happened without a command.
//
// A command that moves the clock proceeds from deadline to deadline. After each deadline that has
// notified a client it answers Unfinished, and it continues when every client has done what it can.
// A client's pipelined commands thus run at the time at which it was notified, and its replies are
// sent before the reply to the command.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "commands/service.h"
#include "commands/test_hooks.h"
#include "test_mode/clock.h"
#include "test_mode/events.h"
#include "test_mode/faults.h"
#include "test_mode/snapshot.h"

namespace tubed::test_mode {

class TestMode final : public commands::TestHooks {
 public:
  // The clock begins at service.now(), when the monotonic clock is at `tick`. `end_drain` ends
  // drain mode. `service` outlives it and calls it.
  TestMode(commands::Service& service, ClockMode mode, Time tick, std::function<void()> end_drain);

  // The test mode of the server that runs this command. Precondition: the server is in test mode.
  static TestMode& of(commands::Context& context) {
    return static_cast<TestMode&>(*context.service.test_hooks());
  }

  // The session of the control connection, which no fault meets and for which the automatic clock
  // does not wait.
  void set_control(SessionId session) { control_ = session; }
  // The queue has jobs already, restored from a journal.
  void recovered();

  std::span<const commands::Command> verbs() const override;
  const commands::Command* command_for(std::string_view word,
                                       const commands::Command* command) override;
  std::optional<Time> tick_began(Time tick) override;
  engine::Deadlines next_deadlines() const override;
  void fact(const Fact& fact) override;
  void notice(const engine::Notice& notice) override;
  void retired(const engine::Retirement& retirement) override;

  // The functions of an observed row.
  protocol::Answer run(const commands::Command& row, commands::Context& context,
                       const commands::ArgumentStorage& storage, commands::Operation& operation);
  commands::BodyPlan begin_body(const commands::Command& row, commands::Context& context,
                                const commands::ArgumentStorage& storage);

  // --- For the test verbs, whose meaning is in their rows.

  // The time of the queue after `duration`. No value: the clock does not reach it.
  std::optional<Time> time_after(Duration duration) const;
  // The next deadline in the time of the queue. No value: no deadline is set. O(1).
  std::optional<Time> next_deadline() const;
  // Moves the clock to `until`, for a command of this session: ADVANCED, or Unfinished when it is
  // to be called again in a later tick. O(connections + work done) for each deadline on the way.
  protocol::Answer advance(SessionId session, Time until);
  protocol::Answer show_clock();  // CLOCK; refers to a member
  // O(jobs + connections), as is restore().
  void reset();
  // Sets `jobs` to the number of jobs. Fails if kMostSnapshots others exist. O(jobs).
  bool take_snapshot(std::string_view name, std::uint64_t& jobs);
  // The number of jobs. No value: the snapshot does not exist.
  std::optional<std::uint64_t> restore(std::string_view name);
  // AWAITED, TIMED_OUT, or Unfinished when the command is parked until an event happens or `until`,
  // a time of the monotonic clock, is reached. O(1).
  protocol::Answer await(commands::Context& context, Event event, std::uint64_t count, Time until);
  // As lines of JSON (test_mode/state_lines.h).
  std::string dump() const;
  // The number of jobs. The error names the line; then nothing was loaded.
  Result<std::uint64_t> load(std::string_view lines);
  EventLog& events() { return events_; }
  Faults& faults() { return faults_; }

 private:
  static constexpr std::size_t kMostSnapshots = 100;

  // The last fact about where a job rests.
  struct Rest {
    JobCounters counters;
    bool held = false;
  };
  // A command that waits for an event until a time of the monotonic clock.
  struct Awaiting {
    SessionId session;
    Time until;
  };

  bool every_client_waits() const;
  bool is_settled(SessionId session) const;
  void set_now(Time now);
  void replace_queue(Time now, const Snapshot* snapshot);
  void learn_rest(JobId id, const Rest& rest);
  void add_event(Event event, std::string_view details);
  void record(const commands::Command& row, SessionId session,
              const commands::ArgumentStorage& storage, const protocol::Answer& answer,
              bool goes_on);
  void added(const Added& added);
  void placed(const Placed& placed);
  std::optional<Event> event_between(const Rest& before, const Rest& after) const;
  Rest rest_of(JobId id) const;
  bool take_retired(JobId id);
  protocol::Answer meet(const Faults::Fault& fault, const commands::Context& context,
                        commands::Operation& operation);
  void continue_awaiting(Time tick);

  commands::Service& service_;
  Clock clock_;
  EventLog events_;
  Faults faults_;
  std::map<std::string, Snapshot, std::less<>> snapshots_;
  std::optional<SessionId> control_;
  std::vector<Awaiting> awaiting_;
  std::unordered_map<JobId, Rest> rests_;       // without those that have only zeros
  std::unordered_set<JobId> cooldowns_;         // of deleted jobs: `Removed` of one deletes no job
  const commands::Command* running_ = nullptr;  // the row of the command table that runs now
  JobId moving_ = 0;                            // the job that the running command moves; 0: none
  // The job whose retirement was recorded as an event. Its next fact is not an event.
  JobId retired_ = 0;
  std::function<void()> end_drain_;
};

}  // namespace tubed::test_mode
