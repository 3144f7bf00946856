#include "engine/queries.h"

#include <algorithm>

namespace tubed::engine {

std::optional<TubeInfo> Queries::tube_info(Time now, std::string_view name) const {
  const Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return std::nullopt;
  return info_of(*tube, now);
}

std::optional<JobInfo> Queries::job_info(Time now, JobId id) const {
  const Job* job = parts_.jobs.find_present(id);
  if (job == nullptr) return std::nullopt;
  JobInfo info{.id = job->id,
               .tube = job->tube->name,
               .state = job->state,
               .priority = job->priority,
               .age = age_of(job, now),
               .delay = job->delay(),
               .ttr = job->ttr,
               .time_left = {},
               .counters = job->counters(),
               .body_bytes = job->body.size(),
               .tags = tags_of(*job),
               .marks = marks_of(*job),
               .held = job->held()};
  const bool timed = job->state == JobState::reserved || job->state == JobState::delayed;
  if (timed && !job->held()) info.time_left = std::max(job->deadline - now, Duration::zero());
  return info;
}

namespace {

std::optional<JobBody> body_of(const Job* job) {
  if (job == nullptr) return std::nullopt;
  return JobBody{.id = job->id, .body = job->body};
}

}  // namespace

std::string_view Queries::tube_of(JobId id) const {
  const Job* job = parts_.jobs.find_present(id);
  return job == nullptr ? std::string_view() : std::string_view(job->tube->name);
}

std::optional<std::string_view> Queries::tube_of_held(SessionId session, JobId id) const {
  const Job* job = parts_.jobs.find(id);
  if (job == nullptr || !job->in_tube() || job->state != JobState::reserved) return std::nullopt;
  if (job->holder() != &parts_.sessions.at(session)) return std::nullopt;
  return job->tube->name;
}

std::optional<SessionId> Queries::holder_of(JobId id) const {
  const Job* job = parts_.jobs.find_present(id);
  if (job == nullptr || job->state != JobState::reserved || job->holder()->past)
    return std::nullopt;
  return job->holder()->id;
}

std::optional<JobBody> Queries::peek(JobId id) const {
  return body_of(parts_.jobs.find_present(id));
}

std::optional<JobBody> Queries::peek_next(SessionId session, Time now) const {
  return body_of(choice_.best(parts_.sessions.at(session), now));
}

std::optional<JobBody> Queries::peek_ready(SessionId session) const {
  return body_of(
      parts_.concurrency_keys.first_of(*parts_.sessions.at(session).used, JobState::ready));
}

std::optional<JobBody> Queries::peek_delayed(SessionId session) const {
  return body_of(parts_.sessions.at(session).used->first(JobState::delayed));
}

std::optional<JobBody> Queries::peek_buried(SessionId session) const {
  return body_of(parts_.sessions.at(session).used->first(JobState::buried));
}

std::optional<JobBody> Queries::peek_reserved(SessionId session) const {
  const JobHistory* held = parts_.sessions.at(session).used->reserved.first();
  while (held != nullptr && held->job->truncated()) held = JobList::next(held);
  return body_of(held == nullptr ? nullptr : held->job);
}

std::vector<JobId> Queries::held_jobs(SessionId session) const {
  std::vector<JobId> ids;
  const DeadlineHeap& held = parts_.sessions.at(session).held;
  ids.reserve(held.size());
  held.for_each([&](const DeadlineKey& key, const Job*) { ids.push_back(key.id); });
  return ids;
}

Slices Queries::slices(std::string_view name, JobState state, std::uint64_t bound) const {
  const Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return {};
  return {.tube = {.index = tube->index, .number = tube->number},
          .state = state,
          .left = std::min<std::uint64_t>(bound, tube->count_of(state))};
}

Slices Queries::slices_to_kick(std::string_view name, std::uint64_t bound) const {
  const Tube* tube = parts_.tubes.find(name);
  const bool buried = tube != nullptr && !tube->buried.empty();
  return slices(name, buried ? JobState::buried : JobState::delayed, bound);
}

namespace {

constexpr JobState kStates[] = {JobState::ready, JobState::delayed, JobState::buried,
                                JobState::reserved};

// Calls visit(const Job&) for each job of the tube in this state.
template <class Visit>
void for_each_in_state(const Tube& tube, JobState state, Visit visit) {
  const auto visit_entry = [&](const auto&, const Job* job) { visit(*job); };
  if (state == JobState::ready) {
    tube.ready.for_each(visit_entry);
    return tube.parked.for_each(visit_entry);
  }
  if (state == JobState::delayed) return tube.delayed.for_each(visit_entry);
  const JobList& list = state == JobState::buried ? tube.buried : tube.reserved;
  for (const JobHistory* history = list.first(); history != nullptr;
       history = JobList::next(history)) {
    visit(*history->job);
  }
}

// Keeps the smallest `limit` ids, sorted; `next` is the first of the others.
void cut_page(JobPage& page, std::uint32_t limit) {
  if (page.jobs.size() > limit) {
    const auto end = page.jobs.begin() + limit;
    std::ranges::nth_element(page.jobs, end);
    page.next = *end;
    page.jobs.resize(limit);
  }
  std::ranges::sort(page.jobs);
}

}  // namespace

JobPage Queries::list_jobs(std::string_view name, std::optional<JobState> state, JobId from,
                           std::uint32_t limit, bool held) const {
  JobPage page;
  const Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return page;
  std::size_t count = state ? tube->count_of(*state) : tube->job_count();
  if (state == JobState::delayed) count = tube->delayed.size();
  const auto is_listed = [&](const Job& job) {
    return !state || (job.state == *state && job.held() == held);
  };
  parts_.entries_walked += std::min<std::size_t>(count, kMaxIdsInPage);
  if (count <= kMaxIdsInPage) {
    for (const JobState any : kStates) {
      if (state && any != *state) continue;
      for_each_in_state(*tube, any, [&](const Job& job) {
        if (job.id >= from && !job.truncated() && is_listed(job)) page.jobs.push_back(job.id);
      });
    }
    cut_page(page, limit);
    return page;
  }
  const JobId end = parts_.jobs.next_id();
  JobId id = std::max<JobId>(from, 1);
  for (std::uint32_t seen = 0; id < end && seen < kMaxIdsInPage && page.jobs.size() < limit;
       ++id, ++seen) {
    const Job* job = parts_.jobs.find_present(id);
    if (job == nullptr || job->tube != tube || !is_listed(*job)) continue;
    page.jobs.push_back(id);
  }
  page.next = id < end ? id : 0;
  return page;
}

FoundJobs Queries::find_jobs(Time now, std::string_view tube, std::optional<JobState> state,
                             JobId from, std::uint32_t limit, bool held,
                             const JobFilter& filter) const {
  // Matching a job takes as long as walking over several, and so does searching some bytes.
  constexpr std::uint64_t kEntriesPerJob = 8;
  constexpr std::uint64_t kBytesPerEntry = 64;
  const JobPage page = list_jobs(tube, state, from, parts_.limits.work_per_turn, held);
  FoundJobs found;
  found.next = page.next;
  std::uint64_t bytes = 0;
  for (const JobId id : page.jobs) {
    if (found.jobs.size() == limit || bytes >= kMaxBytesInPage) {
      found.next = id;
      break;
    }
    ++found.looked;
    const std::string_view body = parts_.jobs.find_present(id)->body.view();
    bytes += body.size() * filter.texts.size();
    if (matches(filter, *job_info(now, id), body)) found.jobs.push_back(id);
  }
  parts_.entries_walked += found.looked * kEntriesPerJob + bytes / kBytesPerEntry;
  return found;
}

JobPage Queries::next_jobs(std::string_view name, std::uint32_t limit) const {
  JobPage page;
  const Tube* tube = parts_.tubes.find(name);
  if (tube == nullptr) return page;
  // Those that are blocked, of late keys, do not count.
  std::size_t wanted = limit;
  std::size_t seen = 0;
  do {
    page.jobs.clear();
    seen = 0;
    tube->ready.visit_smallest(wanted, [&](const Job* job) {
      ++seen;
      if (page.jobs.size() < limit && !is_blocked(*job)) page.jobs.push_back(job->id);
    });
    parts_.entries_walked += seen;
    wanted *= 2;
  } while (page.jobs.size() < limit && seen == wanted / 2);
  return page;
}

}  // namespace tubed::engine
