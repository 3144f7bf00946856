#include "tests/simulation/model/expected_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/simulation/commands.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kMargin = 1s;  // DEADLINE_SOON

// Returns the number after the word.
std::uint64_t number_of(std::string_view line) {
  return leading_number(line.substr(std::min(line.find(' '), line.size() - 1) + 1));
}

std::string_view word_of(std::string_view block, std::string_view name) {
  const std::size_t at = block.find(fmt::format("\n{}: ", name));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = block.substr(at + name.size() + 3);
  return rest.substr(0, rest.find('\n'));
}

bool is_before(const ExpectedJob& one, const ExpectedJob& other) {
  return std::pair(one.priority, one.id) < std::pair(other.priority, other.id);
}

Window later(const Window& ran, Duration duration) {
  return {ran.earliest + duration, ran.latest + duration};
}

}  // namespace

void ExpectedQueue::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

void ExpectedQueue::fail(const ExpectedJob& job, std::string_view what) {
  fail(fmt::format("job {} of {}, priority {}, {}: {}", job.id, job.tube, job.priority,
                   name_of(job.state), what));
}

// --- Time

// True if the time has certainly passed and its effect is visible.
bool ExpectedQueue::has_passed(const Window& window, Time time) const {
  return std::max(window.latest, conditions_->stalled_until()) + kLate < time;
}

void ExpectedQueue::settle(Time now) {
  for (auto& [id, job] : jobs_) {
    if (!job.is_timed() || job.is_doubtful || !has_passed(job.due, now)) continue;
    if (job.state == JobState::reserved) end_reservation(job, now);
    make_ready(job, now);
  }
}

void ExpectedQueue::make_ready(ExpectedJob& job, Time since) {
  job.state = JobState::ready;
  job.ready_since = since;
  job.holder = nullptr;
}

// Its TTR has ended, or its holder has left.
void ExpectedQueue::end_reservation(ExpectedJob& job, Time now) {
  if (job.holder != nullptr) held_until_[job.holder->name] = now;
  if (job.counters && job.holder != nullptr) ++job.counters->timeouts;
  job.may_rest_ready = true;
  job.holder = nullptr;
}

// True if the tube is certainly paused.
bool ExpectedQueue::is_paused(const std::string& tube, Time now) const {
  const auto found = pauses_.find(tube);
  return !doubtful_pauses_.contains(tube) && found != pauses_.end() &&
         now < found->second.end.earliest;
}

bool ExpectedQueue::may_be_paused(const std::string& tube, Time now) const {
  const auto found = pauses_.find(tube);
  return doubtful_pauses_.contains(tube) ||
         (found != pauses_.end() && !has_passed(found->second.end, now));
}

bool ExpectedQueue::may_be_ready(const ExpectedJob& job, Time now) {
  return job.is_doubtful || job.state == JobState::ready ||
         (job.is_timed() && job.due.earliest <= now);
}

bool ExpectedQueue::may_be_given(const ExpectedJob& job, const Consumer& to, Time now) const {
  return to.watches(job.tube) && may_be_ready(job, now) && !is_paused(job.tube, now);
}

Time ExpectedQueue::offered_since(const ExpectedJob& job, const Consumer& to, Time now) const {
  const bool is_certain = !job.is_doubtful && job.state == JobState::ready &&
                          to.watches(job.tube) && !may_be_paused(job.tube, now);
  if (!is_certain) return kNever;
  const Time since = std::max(job.ready_since, conditions_->gives_since);
  const auto pause = pauses_.find(job.tube);
  return pause == pauses_.end() ? since : std::max(since, pause->second.end.latest);
}

// --- Replies

ExpectedJob* ExpectedQueue::find(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

void ExpectedQueue::rest(ExpectedJob& job, JobState state, const Window& due, Time since) {
  job.rest = {state, due};
  job.may_rest_ready = false;
  job.holder = nullptr;
  job.state = state;
  job.due = due;
  if (state == JobState::ready) job.ready_since = since;
  if (state == JobState::buried) job.buried = ++last_buried_;
  // It may have been given to a client that has left.
  if (someone_left_) doubt(job);
}

ExpectedJob& ExpectedQueue::add(const ModelCommand& put, JobId id, const Window& ran) {
  ExpectedJob& job = jobs_[id];
  job.id = id;
  job.tube = put.tube;
  job.body = put.body;
  job.priority = put.priority;
  job.ttr = put.ttr;
  const bool is_delayed = put.time > Duration::zero();
  rest(job, is_delayed ? JobState::delayed : JobState::ready, later(ran, put.time), ran.latest);
  last_id_ = std::max(last_id_, id);
  return job;
}

std::string ExpectedQueue::judge(const ModelReply& reply) {
  settle(reply.ran.earliest);
  switch (reply.command.verb) {
    case ModelVerb::put:
      answered_put(reply);
      break;
    case ModelVerb::reserve:
      answered_reserve(reply);
      break;
    case ModelVerb::reserve_batch:
      answered_batch(reply);
      break;
    case ModelVerb::kick_tube:
    case ModelVerb::move:
      answered_many(reply);
      break;
    case ModelVerb::pause:
      answered_pause(reply);
      break;
    case ModelVerb::list:
      answered_list(reply);
      break;
    default:
      if (ExpectedJob* job = find(reply.command.id); job != nullptr) {
        answered_about(reply, *job);
      } else {
        fail(fmt::format("{}: job {} is gone", reply.consumer->name, reply.command.id));
      }
      break;
  }
  return std::exchange(problem_, {});
}

void ExpectedQueue::answered_put(const ModelReply& reply) {
  const ModelCommand& put = reply.command;
  const bool is_limited = reply.line == "OUT_OF_MEMORY" || reply.line == "JOB_TOO_BIG";
  if (reply.line == "DRAINING" || (is_limited && conditions_->may_refuse_puts))
    return void(lost_puts_.erase(put.body));
  if (!reply.line.starts_with("INSERTED ")) return fail(fmt::format("a put: {}", reply.line));
  const JobId id = number_of(reply.line);
  const bool was_doubtful = lost_puts_.erase(put.body) > 0;
  if (const ExpectedJob* known = find(id)) {  // a client has already got it
    if (!was_doubtful && known->body != put.body) fail(*known, "its id was given to another job");
    return;
  }
  if (id <= last_id_) return fail(fmt::format("the id {} follows {}", id, last_id_));
  ExpectedJob& job = add(put, id, reply.ran);
  if (was_doubtful) doubt(job);
}

void ExpectedQueue::answered_pause(const ModelReply& reply) {
  const ModelCommand& pause = reply.command;
  if (reply.line != "PAUSED") return fail(fmt::format("pause-tube: {}", reply.line));
  doubtful_pauses_.erase(pause.tube);
  pauses_.erase(pause.tube);
  if (pause.time > Duration::zero()) pauses_[pause.tube] = {later(reply.ran, pause.time)};
}

void ExpectedQueue::answered_reserve(const ModelReply& reply) {
  if (reply.line == "TIMED_OUT") return timed_out(reply);
  if (reply.line == "DEADLINE_SOON") return warned(reply);
  if (reply.line.starts_with("RESERVED ")) return reserved(reply, {reply.line, reply.content});
  fail(fmt::format("a reserve: {}", reply.line));
}

void ExpectedQueue::answered_batch(const ModelReply& reply) {
  for (const GivenJob& given : reply.batch) reserved(reply, given);
  if (reply.batch.size() > reply.command.count) return fail("a batch has too many jobs");
  // A reload may have made limits.output_bytes low.
  if (reply.batch.size() == reply.command.count || conditions_->may_refuse_puts) return;
  for (const auto& [id, job] : jobs_) {
    if (offered_since(job, *reply.consumer, reply.ran.earliest) <= reply.command.sent)
      return fail(job, "it is ready, and is not in the batch");
  }
}

void ExpectedQueue::timed_out(const ModelReply& reply) {
  const Consumer& consumer = *reply.consumer;
  const Time sent = reply.command.sent;
  const Time end = conditions_->is_stopping ? sent : sent + reply.command.time;
  if (reply.ran.latest < end) return fail(fmt::format("{}: TIMED_OUT too early", consumer.name));
  for (const auto& [id, job] : jobs_) {
    const bool is_held = job.state == JobState::reserved && job.holder == &consumer;
    if (is_held && !job.is_doubtful && job.due.latest - kMargin < sent &&
        job.due.earliest > reply.ran.latest)
      return fail(job, fmt::format("{}: TIMED_OUT instead of DEADLINE_SOON", consumer.name));
    if (offered_since(job, consumer, end) <= end)
      return fail(job, fmt::format("{}: TIMED_OUT while it is ready", consumer.name));
  }
}

// DEADLINE_SOON: the client holds a job whose TTR ends soon or has just ended.
void ExpectedQueue::warned(const ModelReply& reply) {
  const Consumer& consumer = *reply.consumer;
  const bool holds = std::ranges::any_of(jobs_, [&](const auto& entry) {
    const ExpectedJob& job = entry.second;
    return job.state == JobState::reserved && job.holder == &consumer &&
           (job.is_doubtful || job.due.earliest - kMargin <= reply.ran.latest);
  });
  const auto held = held_until_.find(consumer.name);
  if (!holds && (held == held_until_.end() || held->second < reply.command.sent))
    fail(fmt::format("{}: DEADLINE_SOON without a reason", consumer.name));
}

// Finds the job of a put without a reply, which may still come.
ExpectedJob* ExpectedQueue::find_unanswered_put(const GivenJob& given, Time now) {
  const auto put = lost_puts_.find(given.body);
  if (put == lost_puts_.end()) return nullptr;
  ExpectedJob& job = add(put->second, number_of(given.line), {put->second.sent, now});
  doubt(job);  // it may have been moved
  lost_puts_.erase(put);
  return &job;
}

void ExpectedQueue::reserved(const ModelReply& reply, const GivenJob& given) {
  const Consumer& consumer = *reply.consumer;
  const JobId id = number_of(given.line);
  ExpectedJob* job = find(id);
  if (job == nullptr) job = find_unanswered_put(given, reply.ran.latest);
  if (job == nullptr) return fail(fmt::format("job {} is not known", id));
  if (job->body != given.body) return fail(*job, "it has another body");
  if (!job->is_doubtful) {
    if (!may_be_given(*job, consumer, reply.ran.latest))
      return fail(*job, fmt::format("{} gets it", consumer.name));
    const bool shows_tube = std::ranges::count(given.line, ' ') == 3;
    if (shows_tube && !given.line.ends_with(' ' + job->tube))
      return fail(*job, "it has another tube");
    for (const auto& [other_id, other] : jobs_) {
      const Time since = offered_since(other, consumer, reply.ran.earliest);
      if (&other != job && since <= reply.command.sent && is_before(other, *job))
        return fail(other, fmt::format("job {} is given before it", id));
    }
  }
  take(consumer, *job, reply.ran);
}

void ExpectedQueue::take(const Consumer& consumer, ExpectedJob& job, const Window& ran) {
  if (job.state == JobState::reserved) end_reservation(job, ran.latest);
  const bool was_due_later = !job.is_doubtful && job.due.earliest > ran.earliest;
  const Time earliest = was_due_later ? job.due.earliest : ran.earliest;
  job.state = JobState::reserved;
  job.holder = &consumer;
  job.due = {earliest + job.ttr, ran.latest + job.ttr};
  if (job.is_doubtful) job.counters.reset();
  if (job.counters) ++job.counters->reserves;
}

void ExpectedQueue::answered_many(const ModelReply& reply) {
  const ModelCommand& command = reply.command;
  const bool moves = command.verb == ModelVerb::move;
  const std::string_view word = moves ? "MOVED " : "KICKED ";
  if (moves && reply.line == "OUT_OF_MEMORY" && conditions_->may_refuse_puts) return;
  if (!reply.line.starts_with(word)) return fail(fmt::format("{}: {}", word, reply.line));
  const std::uint64_t count = number_of(reply.line);
  std::uint64_t most = lost_puts_.size();  // jobs that may be in this state
  std::uint64_t least = 0;                 // jobs that certainly are
  for (const auto& [id, job] : jobs_) {
    const bool may_arrive = command.state == JobState::ready && may_be_ready(job, reply.ran.latest);
    if (job.is_doubtful) {  // and perhaps in another tube
      ++most;
      continue;
    }
    if (job.tube != command.tube || !(job.state == command.state || may_arrive)) continue;
    ++most;
    const bool may_leave = job.state == JobState::delayed && job.due.earliest <= reply.ran.latest;
    if (!may_leave && job.state == command.state) ++least;
  }
  const bool is_certain = least == most;
  if (moves && command.to == command.tube) least = most = 0;
  least = std::min(least, command.count);
  most = std::min(most, command.count);
  if (count < least || count > most) {
    return fail(fmt::format("{} jobs of {}: {}, not {} to {}", name_of(command.state), command.tube,
                            reply.line, least, most));
  }
  if (count == 0 || (is_certain && take_all_or_first(reply, count))) return;
  // The engine will show which of the jobs were taken.
  for (auto& [id, job] : jobs_) {
    const bool may_arrive = command.state == JobState::ready && may_be_ready(job, reply.ran.latest);
    if (job.tube == command.tube && (job.state == command.state || may_arrive)) doubt(job);
  }
}

// Returns false if it is unknown which of the jobs were taken.
bool ExpectedQueue::take_all_or_first(const ModelReply& reply, std::uint64_t count) {
  const ModelCommand& command = reply.command;
  std::vector<ExpectedJob*> jobs;
  bool has_order = command.state != JobState::delayed;
  for (auto& [id, job] : jobs_) {
    if (job.tube != command.tube || job.is_doubtful || job.state != command.state) continue;
    if (job.state == JobState::buried && job.buried == 0) has_order = false;
    jobs.push_back(&job);
  }
  if (!has_order && jobs.size() > count) return false;
  const bool is_ready = command.state == JobState::ready;
  std::ranges::sort(jobs, [is_ready](const ExpectedJob* one, const ExpectedJob* other) {
    return is_ready ? is_before(*one, *other) : one->buried < other->buried;
  });
  jobs.resize(std::min<std::size_t>(jobs.size(), count));
  for (ExpectedJob* job : jobs) {
    if (command.verb == ModelVerb::move) {
      job->tube = command.to;
      rest(*job, job->state, job->due, reply.ran.latest);
      job->buried = 0;
    } else {
      if (job->counters) ++job->counters->kicks;
      rest(*job, JobState::ready, {}, reply.ran.latest);
    }
  }
  return true;
}

void ExpectedQueue::answered_about(const ModelReply& reply, ExpectedJob& job) {
  const ModelCommand& command = reply.command;
  const Window& ran = reply.ran;
  const bool may_be_due = job.is_timed() && job.due.earliest <= ran.latest;
  const bool is_reserved = job.state == JobState::reserved;
  const bool is_own = is_reserved && job.holder == reply.consumer;
  const bool is_free = !is_reserved || may_be_due;
  bool may_succeed = true;
  bool may_fail = false;
  switch (command.verb) {
    case ModelVerb::remove:
      may_succeed = is_own || is_free;
      may_fail = is_reserved && !is_own;
      break;
    case ModelVerb::release:
    case ModelVerb::bury:
    case ModelVerb::touch:
      may_succeed = is_own;
      may_fail = !is_own || may_be_due;
      break;
    case ModelVerb::reserve_job:
      may_succeed = is_free;
      may_fail = is_reserved || conditions_->gives_since > ran.earliest;
      break;
    case ModelVerb::kick:
      may_succeed = job.state == JobState::buried || job.state == JobState::delayed;
      may_fail = !may_succeed || (job.state == JobState::delayed && may_be_due);
      break;
    default:
      break;
  }
  const bool succeeded = reply.line != "NOT_FOUND";
  if (!job.is_doubtful && !(succeeded ? may_succeed : may_fail))
    return fail(job, fmt::format("{}: {}", reply.consumer->name, reply.line));
  if (!succeeded) {
    // Its TTR has ended.
    const bool needs_own = command.verb == ModelVerb::release || command.verb == ModelVerb::bury ||
                           command.verb == ModelVerb::touch;
    if (!job.is_doubtful && is_own && needs_own) {
      end_reservation(job, ran.latest);
      make_ready(job, ran.latest);
    }
    return;
  }
  if (job.is_doubtful) job.counters.reset();
  switch (command.verb) {
    case ModelVerb::remove:
      jobs_.erase(job.id);
      return;
    case ModelVerb::release:
      job.priority = command.priority;
      if (job.counters) ++job.counters->releases;
      return rest(job, command.time > Duration::zero() ? JobState::delayed : JobState::ready,
                  later(ran, command.time), ran.latest);
    case ModelVerb::bury:
      job.priority = command.priority;
      if (job.counters) ++job.counters->buries;
      return rest(job, JobState::buried, {}, ran.latest);
    case ModelVerb::touch:
      job.due = later(ran, job.ttr);
      return;
    case ModelVerb::reserve_job:
      if (job.body != reply.content) return fail(job, "it has another body");
      job.due.earliest = ran.earliest;
      return take(*reply.consumer, job, ran);
    case ModelVerb::kick:
      if (job.counters) ++job.counters->kicks;
      return rest(job, JobState::ready, {}, ran.latest);
    case ModelVerb::peek:
      if (job.body != reply.content) fail(job, "it has another body");
      return;
    default:
      if (!job.is_doubtful) shown(job, reply);
      return;
  }
}

void ExpectedQueue::shown(const ExpectedJob& job, const ModelReply& reply) {
  const std::string_view block = reply.content;
  const auto expect = [&](std::string_view name, std::uint64_t least, std::uint64_t most) {
    const std::uint64_t value = leading_number(word_of(block, name));
    if (value < least || value > most)
      fail(job, fmt::format("{} is {}, not {} to {}", name, value, least, most));
  };
  const bool may_be_due = job.is_timed() && job.due.earliest <= reply.ran.latest;
  const std::string_view state = word_of(block, "state");
  if (state != name_of(job.state) && !(may_be_due && state == "ready"))
    return fail(job, fmt::format("it is {}", state));
  if (word_of(block, "tube").find(job.tube) == std::string_view::npos)
    return fail(job, "it has another tube");
  expect("id", job.id, job.id);
  expect("pri", job.priority, job.priority);
  if (!job.counters) return;
  const JobCounters& counters = *job.counters;
  const bool may_end = job.state == JobState::reserved && may_be_due;
  expect("reserves", counters.reserves, counters.reserves);
  expect("timeouts", counters.timeouts, counters.timeouts + (may_end ? 1 : 0));
  expect("releases", counters.releases, counters.releases);
  expect("buries", counters.buries, counters.buries);
  expect("kicks", counters.kicks, counters.kicks);
}

}  // namespace tubed::simulation
