// Queries: what the engine shows of its jobs, tubes and sessions. They change nothing durable.
//
// Texts and views in an answer are valid until the engine's next change.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/job_choice.h"
#include "engine/parts.h"
#include "engine/requests.h"
#include "engine/tube_info.h"
#include "facts/job_filter.h"

namespace tubed::engine {

class Queries {
 public:
  static constexpr std::uint32_t kMaxIdsInPage = 10'000;
  // A filtered page ends after the body with which it has searched this many bytes.
  static constexpr std::uint64_t kMaxBytesInPage = 4ULL << 20;

  // They outlive it.
  Queries(Parts& parts, JobChoice& choice) : parts_(parts), choice_(choice) {}

  // --- Jobs. O(1) except as stated. No value: no such job.

  std::optional<JobBody> peek(JobId id) const;                // [protocol: peek]
  std::optional<JobInfo> job_info(Time now, JobId id) const;  // [protocol: stats-job]
  std::string_view tube_of(JobId id) const;                   // empty: no such job
  // No value also for a job that no session of this engine holds.
  std::optional<SessionId> holder_of(JobId id) const;
  // Calls visit(JobId) for each job, in the order of ids. O(n).
  template <class Visit>
  void for_each_job(Visit visit) const {
    parts_.jobs.for_each([&](const Job& job) {
      if (!job.flushed()) visit(job.id);
    });
  }
  // The id that the next put gets.
  JobId next_id() const { return parts_.jobs.next_id(); }
  // No value: the group has neither members nor jobs that wait for it. O(log groups). [extension:
  // stats-group]
  std::optional<GroupInfo> group_info(std::string_view name) const {
    return parts_.groups.info(name);
  }

  // --- Sessions.

  std::size_t watched_count(SessionId session) const {
    return parts_.sessions.at(session).watches.size();
  }
  // In list order. O(1).
  std::string_view watched_tube(SessionId session, std::size_t place) const {
    return parts_.sessions.at(session).watches[place].tube->name;
  }
  // Calls visit(std::string_view) for the name of each watched tube, in list order.
  template <class Visit>
  void for_each_watched(SessionId session, Visit visit) const {
    for (const WatchEntry& watch : parts_.sessions.at(session).watches)
      visit(std::string_view(watch.tube->name));
  }
  std::size_t held_count(SessionId session) const {
    return parts_.sessions.at(session).held.size();
  }
  // The ids of the jobs that the session holds. O(held).
  std::vector<JobId> held_jobs(SessionId session) const;
  // Also for a job whose tube was truncated. No value: the session does not hold the job. O(1).
  std::optional<std::string_view> tube_of_held(SessionId session, JobId id) const;
  // The job that reserve_ready() would give, at the same cost.
  std::optional<JobBody> peek_next(SessionId session, Time now) const;
  // The first job of the used tube in each state: the most urgent, the first to become ready, and
  // the first that was buried.
  std::optional<JobBody> peek_ready(SessionId session) const;
  std::optional<JobBody> peek_delayed(SessionId session) const;
  std::optional<JobBody> peek_buried(SessionId session) const;
  // Of the reserved jobs of the used tube, the first that was reserved. O(1), unless the tube was
  // truncated.
  std::optional<JobBody> peek_reserved(SessionId session) const;

  // --- Tubes. O(log tubes) except as stated.

  std::optional<TubeInfo> tube_info(Time now, std::string_view tube) const;  // none: no such tube
  // Calls visit(const TubeInfo&) for `limit` tubes at most, in list order, from this place of the
  // list on. Returns the place of the next tube, or 0 if the list ends before it. Between two calls
  // a tube that is removed gives its place to the last tube of the list. O(limit).
  // [extension: stats-tubes]
  template <class Visit>
  std::uint64_t visit_tubes(Time now, std::uint64_t from, std::uint32_t limit, Visit visit) const {
    const auto& all = parts_.tubes.all();
    std::uint64_t place = from;
    for (std::uint32_t visited = 0; place < all.size() && visited < limit; ++place, ++visited) {
      ++parts_.entries_walked;
      visit(info_of(*all[place], now));
    }
    return place < all.size() ? place : 0;
  }
  // True if the policy of the tube allows no more jobs.
  bool is_full(std::string_view name) const {
    const Tube* tube = parts_.tubes.find(name);
    return tube != nullptr && tube->is_full();
  }
  // False if a job cannot be put into that tube, because it would be one tube too many.
  bool has_room_for_tube(std::string_view tube) const { return parts_.registry.has_room_for(tube); }
  // A page of the tube's jobs in this state (of delayed jobs: those that are held, or those that
  // are not), or in any, in the order of ids, starting at `from`. A page may be shorter than
  // `limit`. A job that exists during the whole walk is listed exactly once. O(jobs in the state),
  // or O(kMaxIdsInPage) if that is less.
  [[gnu::cold]] JobPage list_jobs(std::string_view tube, std::optional<JobState> state, JobId from,
                                  std::uint32_t limit, bool held = false) const;
  // The jobs of such a list that match the filter, in the order of ids, starting at `from`. The
  // page ends after `limit` of them, after Limits::work_per_turn jobs that it has looked at, after
  // kMaxBytesInPage, or as a page of list_jobs() does. O(a page of list_jobs() + bytes searched).
  [[gnu::cold]] FoundJobs find_jobs(Time now, std::string_view tube, std::optional<JobState> state,
                                    JobId from, std::uint32_t limit, bool held,
                                    const JobFilter& filter) const;
  // The first `limit` ready jobs of the tube, in the order in which they are given; of the jobs
  // with one concurrency key, the first. O(limit log limit).
  [[gnu::cold]] JobPage next_jobs(std::string_view tube, std::uint32_t limit) const;
  // Plans work on `bound` jobs of the tube in this state at most, in the order of Tube::first().
  // Plans nothing if no such tube exists.
  Slices slices(std::string_view tube, JobState state, std::uint64_t bound) const;
  // Plans a kick: of the tube's buried jobs if it has any, else of its delayed jobs.
  // [protocol: kick]
  Slices slices_to_kick(std::string_view tube, std::uint64_t bound) const;

  const Policies& policies() const { return parts_.policies; }
  const TubeMetricsRegistry& tube_metrics() const { return parts_.tube_metrics; }

 private:
  Parts& parts_;
  JobChoice& choice_;
};

}  // namespace tubed::engine
