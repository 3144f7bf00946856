#include "tables/groups.h"

#include <utility>

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

Group* Groups::find_or_add(std::string_view name) {
  if (Group* group = find(name); group != nullptr) return group;
  auto added = std::make_unique<Group>();
  added->name = name;
  Group* group = added.get();
  groups_.emplace(group->name, std::move(added));
  return group;
}

void Groups::update(Group* group) {
  if (group->members > 0) return;
  if (group->held.empty()) {
    groups_.erase(groups_.find(group->name));
  } else if (!deferred_) {
    complete(group);
  }
}

void Groups::count(const Job& job, JobState state, bool enters) {
  const GroupRecord* record = job.groups();
  if (record == nullptr || record->group == nullptr) return;
  std::uint64_t& count = count_of(record->group->states, state);
  count = enters ? count + 1 : count - 1;
}

void Groups::add(Job& job, std::string_view group, std::string_view after) {
  auto& record = job.tags()->groups;
  record = std::make_unique<GroupRecord>(&job);
  record->after = after;
  if (!group.empty()) {
    record->group = find_or_add(group);
    ++record->group->members;
    count(job, job.state, true);
  }
  if (job.held()) hold(job);
}

void Groups::remove(Job& job) {
  unhold(job);
  GroupRecord& record = *job.groups();
  Group* group = std::exchange(record.group, nullptr);
  const std::string_view name = group == nullptr ? std::string_view() : group->name;
  memory_.give_back_part(cost_of(name, record.after));
  if (group != nullptr) {
    --group->members;
    --count_of(group->states, job.state);
    update(group);
  }
  job.tags()->groups.reset();
}

void Groups::hold(Job& job) {
  GroupRecord& record = *job.groups();
  record.holder = find_or_add(record.after);
  record.holder->held.push_back(&record);
}

void Groups::unhold(Job& job) {
  GroupRecord& record = *job.groups();
  Group* group = std::exchange(record.holder, nullptr);
  if (group == nullptr) return;
  group->held.erase(&record);
  // A group with members stays. A complete group is dropped when its last job has left.
  if (group->held.empty() && find(group->name) == group) update(group);
  while (!complete_.empty() && complete_.front()->held.empty()) complete_.pop_front();
}

bool Groups::must_hold(const Job& job) const {
  if (!job.waits_for_group()) return false;
  const GroupRecord& record = *job.groups();
  const Group* group = find(record.after);
  // A group that holds the job and is complete is not found: another group has its name now.
  const bool released = record.holder != nullptr && record.holder != group;
  return !released && group != nullptr && group->members > 0;
}

std::optional<GroupInfo> Groups::info(std::string_view name) const {
  const Group* group = find(name);
  if (group == nullptr) return std::nullopt;
  return GroupInfo{.name = group->name, .members = group->states, .held = group->held.size()};
}

}  // namespace tubed::engine
