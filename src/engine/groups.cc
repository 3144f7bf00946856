// Engine: groups, and jobs that wait for them (engine/groups.h).
#include <utility>

#include "engine/engine.h"

namespace tubed::engine {

namespace {

std::uint64_t& count_of(StateCounts& counts, JobState state) {
  switch (state) {
    case JobState::ready:
      return counts.ready;
    case JobState::delayed:
      return counts.delayed;
    case JobState::buried:
      return counts.buried;
    case JobState::reserved:
      break;
  }
  return counts.reserved;
}

}  // namespace

// Of a job that has tags.
void Engine::count_member(const Job& job, JobState state, bool enters) {
  const GroupRecord* record = job.groups();
  if (record == nullptr || record->group == nullptr) return;
  std::uint64_t& count = count_of(record->group->states, state);
  count = enters ? count + 1 : count - 1;
}

void Engine::add_groups(Job& job, const JobTags& tags) {
  extended_ = true;
  auto& record = make_tags(job).groups;
  record = std::make_unique<GroupRecord>(&job);
  record->after = tags.after;
  if (!tags.group.empty()) {
    record->group = groups_.find_or_add(tags.group);
    ++record->group->members;
    count_member(job, job.state, true);
  }
  if (job.held()) hold(job);
}

// The job rests delayed without an end.
void Engine::hold(Job& job) {
  GroupRecord& record = *job.groups();
  record.holder = groups_.find_or_add(record.after);
  record.holder->held.push_back(&record);
}

// It no longer does.
void Engine::unhold(Job& job) {
  GroupRecord& record = *job.groups();
  Group* group = std::exchange(record.holder, nullptr);
  if (group == nullptr) return;
  group->held.erase(&record);
  // A group with members stays. A complete group is dropped when its last job has left.
  if (group->held.empty() && groups_.find(group->name) == group) groups_.update(group);
  groups_.drop_empty();
}

// True: the group that the job waits for has members. The job may be one of them.
bool Engine::must_hold(const Job& job) const {
  if (!job.waits_for_group()) return false;
  const GroupRecord& record = *job.groups();
  const Group* group = groups_.find(record.after);
  // A group that holds the job and is complete is not found: another group has its name now.
  const bool released = record.holder != nullptr && record.holder != group;
  return !released && group != nullptr && group->members > 0;
}

void Engine::attach_held(Job* job) {
  attach_delayed(job, kNever);
  hold(*job);
}

// The job was put.
void Engine::wait_for_group(Job* job) {
  GroupRecord* record = job->groups();
  if (record == nullptr || record->after.empty() || job->state != JobState::ready) return;
  record->after_done = false;
  if (must_hold(*job)) {
    detach(job);
    attach_held(job);
  } else {
    record->after_done = true;
  }
}

// The delay of a job that waits for a group has ended. The fact that began the delay does not say
// whether the job is held then.
void Engine::end_delay_of_waiting(Job* job, Output& out) {
  detach(job);
  if (must_hold(*job)) {
    attach_held(job);
  } else {
    attach_ready(job);
    serve_queue_.push(job->tube);
  }
  emit_placed(*job, out);
}

// Makes up to work_per_turn jobs of complete groups ready.
void Engine::release_held(Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  for (; budget > 0 && groups_.has_complete(); --budget) {
    Job* job = groups_.next_held()->job;
    if (job->flushed()) {
      unhold(*job);
      continue;
    }
    make_ready(job);
    emit_placed(*job, out);
  }
}

// The job is about to be removed, and may be flushed.
void Engine::free_groups(Job& job) {
  unhold(job);
  GroupRecord& record = *job.groups();
  Group* group = std::exchange(record.group, nullptr);
  const std::string_view name = group == nullptr ? std::string_view() : group->name;
  memory_.give_back_part(Groups::cost_of(name, record.after));
  if (group != nullptr) {
    --group->members;
    --count_of(group->states, job.state);
    groups_.update(group);
  }
  job.tags()->groups.reset();
}

std::optional<GroupInfo> Engine::group_info(std::string_view name) const {
  const Group* group = groups_.find(name);
  if (group == nullptr) return std::nullopt;
  return GroupInfo{.name = group->name, .members = group->states, .held = group->held.size()};
}

}  // namespace tubed::engine
