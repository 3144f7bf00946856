// Doubts of the expected queue: commands without a reply, and what a restart restores.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/model/expected_queue.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

// The server notices within this time that a client has left.
constexpr Duration kUnseen = 250ms;

Window union_of(const Window& one, const Window& other) {
  return {std::min(one.earliest, other.earliest), std::max(one.latest, other.latest)};
}

}  // namespace

// --- Doubts

void ExpectedQueue::doubt(ExpectedJob& job) {
  job.is_doubtful = has_doubts_ = true;
}

void ExpectedQueue::doubt_unanswered(const ModelCommand& command) {
  has_doubts_ = true;
  for (auto& [id, job] : jobs_) {
    if (command.id == id || (command.count > 0 && command.tube == job.tube)) doubt(job);
    if (command.id == id && command.verb == ModelVerb::remove) job.may_be_gone = true;
  }
  if (command.verb == ModelVerb::put) lost_puts_.emplace(command.body, command);
  if (command.verb == ModelVerb::pause) doubtful_pauses_.insert(command.tube);
}

void ExpectedQueue::doubt_effects(const Consumer& consumer, const ModelCommand& command, Time now) {
  doubt_unanswered(command);
  if (!command.takes_any()) return;
  // The server gives jobs to a client until it notices that the client has left.
  for (auto& [id, job] : jobs_) {
    const bool may_be_given_soon = !job.is_timed() || job.due.earliest <= now + kUnseen;
    if (may_be_given_soon && consumer.watches(job.tube)) doubt(job);
  }
}

// A reservation is not durable, but its end may be.
void ExpectedQueue::doubt_durable_effects(const ModelCommand& command) {
  if (command.verb != ModelVerb::reserve_job) return doubt_unanswered(command);
  if (ExpectedJob* job = find(command.id); job != nullptr) job->may_rest_ready = true;
}

void ExpectedQueue::lose(const Consumer& consumer) {
  has_doubts_ = someone_left_ = true;
  for (auto& [id, job] : jobs_) {
    if (job.state != JobState::reserved || job.holder != &consumer) continue;
    doubt(job);
    job.may_rest_ready = true;
    job.holder = nullptr;
  }
}

void ExpectedQueue::doubt_differences(const ExpectedQueue& other) {
  for (const auto& [id, there] : other.jobs_) {
    const auto [entry, is_new] = jobs_.emplace(id, there);
    ExpectedJob& job = entry->second;
    if (is_new) job.may_be_gone = true;
    const bool is_same = !is_new && job.tube == there.tube && job.priority == there.priority &&
                         job.state == there.state && job.holder == there.holder &&
                         job.rest.state == there.rest.state &&
                         job.may_rest_ready == there.may_rest_ready &&
                         job.counters == there.counters && !there.is_doubtful;
    job.due = union_of(job.due, there.due);
    job.rest.due = union_of(job.rest.due, there.rest.due);
    job.ready_since = std::max(job.ready_since, there.ready_since);
    if (job.buried != there.buried) job.buried = 0;
    if (!is_same) doubt(job);
  }
  for (auto& [id, job] : jobs_) {
    if (other.jobs_.contains(id)) continue;
    doubt(job);
    job.may_be_gone = true;
  }
  for (const auto& [tube, pause] : other.pauses_) {
    const auto [entry, is_new] = pauses_.emplace(tube, pause);
    entry->second.end = union_of(entry->second.end, pause.end);
    if (is_new) doubtful_pauses_.insert(tube);
  }
  for (const auto& [name, until] : other.held_until_)
    held_until_[name] = std::max(held_until_[name], until);
  lost_puts_.insert(other.lost_puts_.begin(), other.lost_puts_.end());
  doubtful_pauses_.insert(other.doubtful_pauses_.begin(), other.doubtful_pauses_.end());
  has_doubts_ |= other.has_doubts_ || !doubtful_pauses_.empty();
  someone_left_ |= other.someone_left_;
  last_id_ = std::max(last_id_, other.last_id_);
  last_buried_ = std::max(last_buried_, other.last_buried_);
}

std::string ExpectedQueue::resolve(const engine::Engine& engine, Time now) {
  has_doubts_ = someone_left_ = false;
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    const bool exists = !entry->second.is_doubtful || resolve(entry->second, engine, now);
    entry = exists ? std::next(entry) : jobs_.erase(entry);
  }
  resolve_pauses(engine, now);
  find_lost_puts(engine, now);
  return std::exchange(problem_, {});
}

// Returns whether the job still exists.
bool ExpectedQueue::resolve(ExpectedJob& job, const engine::Engine& engine, Time now) {
  const auto info = engine.queries().job_info(now, job.id);
  if (!info) {
    if (!job.may_be_gone) fail(job, "it is lost");
    return false;
  }
  if (info->state == JobState::reserved && job.holder == nullptr)
    fail(job, "a client that has left holds it");
  adopt(job, engine, *info, now);
  return true;
}

void ExpectedQueue::adopt(ExpectedJob& job, const engine::Engine& engine,
                          const engine::JobInfo& info, Time now) {
  const auto body = engine.queries().peek(job.id);
  if (body && body->body.view() != job.body) fail(job, "it has another body");
  job.is_doubtful = job.may_be_gone = false;
  job.priority = info.priority;
  job.tube = info.tube;
  job.counters = info.counters;
  if (info.state == JobState::reserved) return;
  if (job.holder != nullptr) held_until_[job.holder->name] = now;
  job.state = info.state;
  job.holder = nullptr;
  job.due = {now + info.time_left, now + info.time_left};
  job.ready_since = now;
  job.buried = 0;
  job.rest = {job.state, job.due};
  job.may_rest_ready = false;
}

void ExpectedQueue::resolve_pauses(const engine::Engine& engine, Time now) {
  for (const std::string& tube : std::exchange(doubtful_pauses_, {})) {
    const auto info = engine.queries().tube_info(now, tube);
    pauses_.erase(tube);
    if (info && info->pause_left > Duration::zero())
      pauses_[tube] = {{now + info->pause_left, now + info->pause_left}};
  }
}

// A put without a reply may have run.
void ExpectedQueue::find_lost_puts(const engine::Engine& engine, Time now) {
  engine.queries().for_each_job([&](JobId id) {
    if (!problem_.empty() || jobs_.contains(id)) return;
    const auto info = engine.queries().job_info(now, id);
    if (!info || std::ranges::find(kModelTubes, info->tube) == kModelTubes.end()) return;
    const auto put = lost_puts_.find(std::string(engine.queries().peek(id)->body.view()));
    if (put == lost_puts_.end())
      return fail(fmt::format("no client has put job {}, or it was deleted", id));
    adopt(add(put->second, id, {now, now}), engine, *info, now);
    lost_puts_.erase(put);
  });
  lost_puts_.clear();
}

// --- Processes

std::string ExpectedQueue::restart(const engine::Engine& engine, Time now, Time begun) {
  // Across a restart, delays and pauses end by the wall clock.
  const bool has_other_clock = conditions_->clock_stepped && *conditions_->clock_stepped >= begun;
  has_doubts_ = someone_left_ = false;
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    ExpectedJob& job = entry->second;
    const auto info = engine.queries().job_info(now, job.id);
    if (!info && !(job.is_doubtful && job.may_be_gone)) fail(job, "it is lost");
    if (!info) {
      entry = jobs_.erase(entry);
      continue;
    }
    if (job.state == JobState::reserved) job.may_rest_ready = true;
    job.holder = nullptr;
    if (!job.is_doubtful) expect_at_rest(job, *info, now, has_other_clock);
    adopt(job, engine, *info, now);
    ++entry;
  }
  for (const std::string_view name : kModelTubes) {
    const std::string tube(name);
    const auto info = engine.queries().tube_info(now, tube);
    const Duration left = info ? info->pause_left : Duration::zero();
    const auto pause = pauses_.find(tube);
    const bool was_paused = pause != pauses_.end() && pause->second.end.earliest > now + kLate;
    const bool is_certain = !has_other_clock && !doubtful_pauses_.contains(tube);
    if (was_paused && left == Duration::zero() && is_certain)
      fail(fmt::format("the pause of {} is lost", tube));
    doubtful_pauses_.insert(tube);
  }
  resolve_pauses(engine, now);
  find_lost_puts(engine, now);
  return std::exchange(problem_, {});
}

// The job must be where the last acknowledged command has left it.
void ExpectedQueue::expect_at_rest(const ExpectedJob& job, const engine::JobInfo& info, Time now,
                                   bool has_other_clock) {
  if (info.priority != job.priority) fail(job, fmt::format("its priority is {}", info.priority));
  if (info.tube != job.tube) fail(job, fmt::format("it is in {}", info.tube));
  const bool is_over = job.rest.state == JobState::delayed &&
                       (has_other_clock || job.rest.due.earliest <= now + kLate);
  const bool may_rest_ready = job.may_rest_ready || is_over;
  const bool may_be =
      info.state == job.rest.state || (may_rest_ready && info.state == JobState::ready) ||
      (has_other_clock && info.state == JobState::delayed && job.rest.state == JobState::ready);
  if (!may_be) fail(job, fmt::format("after a restart it is {}", name_of(info.state)));
  const bool is_delayed = info.state == JobState::delayed && job.rest.state == JobState::delayed;
  if (!is_delayed || has_other_clock) return;
  const Time due = now + info.time_left;
  if (due + kLate < job.rest.due.earliest || due > job.rest.due.latest + kLate)
    fail(job, "after a restart its delay ends at another time");
}

}  // namespace tubed::simulation
