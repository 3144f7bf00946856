// ExpectedQueue: the expected contents of the model's tubes, and the expected replies.
//
// 1. A command has run within the window of its reply. Each time that follows from that moment,
//    such as the end of a delay, has a window too: a change before the window is a fault, and so is
//    its absence after the window. Within it both are possible.
// 2. A job is doubtful if commands without a reply may have changed it, or if a command that
//    changes several jobs does not show which. Every reply about it is possible until resolve()
//    reads from the engine what has happened.
// 3. Every acknowledged change must survive a restart.
//
// It is copied to try the orders in which commands may have run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "tests/simulation/conditions.h"
#include "tests/simulation/model/model_command.h"

namespace tubed::simulation {

// Timers have a resolution of milliseconds, and their effects take a few ticks.
inline constexpr Duration kLate = std::chrono::milliseconds(5);

// Where a job is when no client holds it.
struct Rest {
  JobState state = JobState::ready;  // not reserved
  Window due = {};                   // of a delayed job
};

struct ExpectedJob {
  JobId id = 0;
  std::string tube;
  std::string body;
  Priority priority = 0;
  Duration ttr{};
  JobState state = JobState::ready;
  Window due = {};           // when a delayed or reserved job becomes ready, or a ready job did
  Time ready_since;          // from then a ready job is certainly ready
  std::uint64_t buried = 0;  // place of a buried job in its tube; 0: unknown
  const Consumer* holder = nullptr;  // of a reserved job; null: the client has left
  Rest rest;                         // as acknowledged: restored by a restart
  bool may_rest_ready = false;       // or as a ready job, because its reservation has ended
  std::optional<JobCounters> counters = JobCounters();  // nothing: unknown
  bool is_doubtful = false;
  bool may_be_gone = false;  // while it is doubtful

  bool is_timed() const { return state == JobState::delayed || state == JobState::reserved; }
};

class ExpectedQueue {
 public:
  // `conditions` outlives the queue.
  explicit ExpectedQueue(const Conditions& conditions) : conditions_(&conditions) {}

  // Returns the problem of the reply, or an empty text. Earlier commands must have been judged.
  std::string judge(const ModelReply& reply);
  // Makes jobs ready whose delay or TTR has certainly ended by `now`.
  void settle(Time now);

  const std::map<JobId, ExpectedJob>& jobs() const { return jobs_; }
  bool may_be_given(const ExpectedJob& job, const Consumer& to, Time now) const;
  // Returns since when the job has been ready so certainly that a waiting client must get it;
  // kNever: it is not certain.
  Time offered_since(const ExpectedJob& job, const Consumer& to, Time now) const;

  // --- Doubts
  bool has_doubts() const { return has_doubts_; }
  bool someone_left() const { return someone_left_; }
  // The command has no reply yet and may have run.
  void doubt_effects(const Consumer& consumer, const ModelCommand& command, Time now);
  // The command has no reply and may have run before the process ended: the changes that it may
  // have made durable are doubtful.
  void doubt_durable_effects(const ModelCommand& command);
  // The client has left.
  void lose(const Consumer& consumer);
  // The same replies in another order give `other`.
  void doubt_differences(const ExpectedQueue& other);
  // Ends all doubts by reading the engine. Returns a problem, or an empty text. Precondition: all
  // replies of the engine were judged, and clients that have left are closed.
  std::string resolve(const engine::Engine& engine, Time now);

  // --- Processes
  // A process has recovered the queue, in which no client holds a job. The process before it began
  // at `begun`. Returns a problem, or an empty text.
  std::string restart(const engine::Engine& engine, Time now, Time begun);

 private:
  struct Pause {
    Window end;
  };

  void fail(std::string problem);
  void fail(const ExpectedJob& job, std::string_view what);

  // --- Time
  bool has_passed(const Window& window, Time time) const;
  static void make_ready(ExpectedJob& job, Time since);
  void end_reservation(ExpectedJob& job, Time now);
  bool is_paused(const std::string& tube, Time now) const;
  bool may_be_paused(const std::string& tube, Time now) const;
  static bool may_be_ready(const ExpectedJob& job, Time now);

  // --- Replies
  void answered_put(const ModelReply& reply);
  void answered_pause(const ModelReply& reply);
  void answered_reserve(const ModelReply& reply);
  void answered_many(const ModelReply& reply);
  void answered_about(const ModelReply& reply, ExpectedJob& job);
  void answered_batch(const ModelReply& reply);
  void reserved(const ModelReply& reply, const GivenJob& given);
  void timed_out(const ModelReply& reply);
  void warned(const ModelReply& reply);
  void shown(const ExpectedJob& job, const ModelReply& reply);
  void answered_list(const ModelReply& reply);
  void listed_as(const ExpectedJob& job, const std::vector<std::string_view>& words,
                 bool may_change);
  void take(const Consumer& consumer, ExpectedJob& job, const Window& ran);
  bool take_all_or_first(const ModelReply& reply, std::uint64_t count);
  ExpectedJob* find(JobId id);
  ExpectedJob& add(const ModelCommand& put, JobId id, const Window& ran);
  ExpectedJob* find_unanswered_put(const GivenJob& given, Time now);
  void rest(ExpectedJob& job, JobState state, const Window& due, Time since);

  // --- Doubts
  void doubt(ExpectedJob& job);
  void doubt_unanswered(const ModelCommand& command);
  bool resolve(ExpectedJob& job, const engine::Engine& engine, Time now);
  void adopt(ExpectedJob& job, const engine::Engine& engine, const engine::JobInfo& info, Time now);
  void find_lost_puts(const engine::Engine& engine, Time now);
  void resolve_pauses(const engine::Engine& engine, Time now);
  void expect_at_rest(const ExpectedJob& job, const engine::JobInfo& info, Time now,
                      bool has_other_clock);

  const Conditions* conditions_;
  std::map<JobId, ExpectedJob> jobs_;
  std::map<std::string, Pause, std::less<>> pauses_;
  std::map<std::string, ModelCommand> lost_puts_;  // by body
  std::set<std::string> doubtful_pauses_;
  std::map<std::string, Time> held_until_;  // by client: the last end of a reservation by its TTR
  bool has_doubts_ = false;
  bool someone_left_ = false;
  JobId last_id_ = 0;
  std::uint64_t last_buried_ = 0;
  std::string problem_;
};

}  // namespace tubed::simulation
