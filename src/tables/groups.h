// Groups: jobs that belong together, and jobs that wait until all of a group have ended
// [extension: grp, aft].
//
// A job is a member of its group, in whatever state and tube it is, until it is removed. A job that
// waits for a group (aft) is held when it would become ready while the group has members: it rests
// delayed, without an end. When the last member is removed the group is complete, and the jobs that
// it holds become ready, a slice in each tick. A job that was ready once is not held again, which
// is a mark of the job (JobMarks::after_done).
//
// A group exists while it has a member or holds a job. A group that is complete is no longer found
// by its name, which a new group may have.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "facts/info.h"
#include "tables/job.h"
#include "tables/job_memory.h"

namespace tubed::engine {

using HeldList = IntrusiveList<GroupRecord, &GroupRecord::held_links>;

struct Group {
  std::string name;
  std::uint64_t members = 0;
  StateCounts states;  // of the members, without urgent
  HeldList held;       // in the order of their holding
};

class Groups {
 public:
  // The bytes that a job with these names counts as: its own record, and a part of its groups' that
  // is enough for a job that is alone in both.
  static std::uint32_t cost_of(std::string_view group, std::string_view after) {
    return kBytesPerJob + static_cast<std::uint32_t>(group.size() + after.size());
  }

  // The memory outlives it.
  explicit Groups(JobMemory& memory) : memory_(memory) {}

  // Makes the job a member of `group` and lets it wait for `after`; either name may be empty. If it
  // is held, the group holds it. Precondition: it has tags, and its memory was claimed. O(log
  // groups).
  void add(Job& job, std::string_view group, std::string_view after);
  // It is about to be removed, and may be flushed. The same cost.
  void remove(Job& job);
  // Counts a member, if the job is one, in a state that it enters or leaves. O(1).
  [[gnu::cold]] static void count(const Job& job, JobState state, bool enters);

  // True: the group that the job waits for has members. The job may be one of them. O(log groups).
  bool must_hold(const Job& job) const;
  // Holds the job, which rests delayed without an end. O(log groups).
  void hold(Job& job);
  // It no longer does, or did not. O(log groups).
  [[gnu::cold]] void unhold(Job& job);

  // No value: no group with members, or with jobs that it holds, has the name. O(log groups).
  std::optional<GroupInfo> info(std::string_view name) const;

  // While it is deferred, no group becomes complete: facts may name a member after they have
  // removed all others. The end of it completes the groups without members. O(groups).
  bool deferred() const { return deferred_; }
  void defer() { deferred_ = true; }
  void end_deferral() {
    deferred_ = false;
    for (auto next = groups_.begin(); next != groups_.end();) {
      Group* group = (next++)->second.get();
      if (group->members == 0) complete(group);
    }
  }

  bool has_complete() const { return !complete_.empty(); }
  // The next held job of a complete group. Precondition: has_complete().
  GroupRecord* next_held() const { return complete_.front()->held.first(); }

  // Calls visit(const Group&, bool complete) for each group. For tests.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, group] : groups_) visit(*group, false);
    for (const auto& group : complete_) visit(*group, true);
  }

 private:
  // Measured for a job with a group and one to wait for, in which it is alone.
  static constexpr std::uint32_t kBytesPerJob = 560;

  // Null: as info() says it.
  Group* find(std::string_view name) const {
    const auto found = groups_.find(name);
    return found == groups_.end() ? nullptr : found->second.get();
  }
  Group* find_or_add(std::string_view name);
  // Called after a member or a held job has left. Precondition: the group is found by its name.
  void update(Group* group);
  void complete(Group* group) {
    const auto found = groups_.find(group->name);
    complete_.push_back(std::move(found->second));
    groups_.erase(found);
  }

  JobMemory& memory_;
  std::map<std::string_view, std::unique_ptr<Group>> groups_;  // keys point into the groups
  std::deque<std::unique_ptr<Group>> complete_;                // the first holds a job
  bool deferred_ = false;
};

}  // namespace tubed::engine
