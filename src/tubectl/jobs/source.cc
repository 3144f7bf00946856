// Ready jobs: next() sends a batch of "reserve-with-timeout 0", whose replies contain the bodies,
// and completes the records by stats-job. A paused tube returns no job that way; next() then falls
// back to the search below.
//
// Delayed and buried jobs: no command lists the jobs of a state; a peek shows only the next job.
// But jobs that were put together have near ids, so look_around() requests the stats of the ids
// around the peeked job and keeps those that match. The width of the search adapts for each side:
// it doubles where at least half of the ids matched and shrinks where fewer than an eighth did. In
// the worst case each call finds one job at the cost of a few commands; in the usual case of jobs
// in sequence it costs about two commands per job.
//
// The size of a batch adapts to the latest bodies: a batch holds about kBatchBytes.
#include "tubectl/jobs/source.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "client/stats_block.h"
#include "protocol/reply.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/filters.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

// The bounds of a batch; the number of jobs also bounds the search on each side.
constexpr std::size_t kBatchJobs = 512;
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;
// Used until the size of the bodies is known.
constexpr std::size_t kFirstBatchJobs = 16;
constexpr std::size_t kLeastNear = 4;
constexpr std::size_t kMostNear = kBatchJobs;
// Bounds how often in a row other clients may remove all jobs found.
constexpr int kTries = 3;

void append_command(std::string& commands, std::string_view name, JobId id) {
  fmt::format_to(std::back_inserter(commands), "{} {}\r\n", name, id);
}

// Replaces each record by the result of stats-job, but keeps its body. A job that no longer exists
// gets the id 0.
Result<void> describe_jobs(client::Connection& connection, std::vector<JobRecord>& jobs) {
  return ask_each(
      connection, jobs.size(),
      [&](std::size_t i, std::string& commands) {
        append_command(commands, "stats-job", jobs[i].id);
      },
      [&](std::size_t i, client::Reply&& answer) {
        auto described =
            answer.is("OK") ? record_of(client::StatsBlock(answer.body)) : std::nullopt;
        std::string body = std::move(jobs[i].body);
        jobs[i] = described ? std::move(*described) : JobRecord();
        jobs[i].body = std::move(body);
      });
}

// Sends the command for each job. Returns for each whether the reply was `due`.
Result<std::vector<bool>> do_to_each(client::Connection& connection,
                                     std::span<const JobRecord> jobs, std::string_view name,
                                     std::string_view due) {
  std::vector<bool> done(jobs.size());
  TRY(ask_each(
      connection, jobs.size(),
      [&](std::size_t i, std::string& commands) { append_command(commands, name, jobs[i].id); },
      [&](std::size_t i, const client::Reply& answer) { done[i] = answer.is(due); }));
  return done;
}

// Removes the records that describe_jobs() marked with the id 0.
void drop_gone(std::vector<JobRecord>& jobs) {
  std::erase_if(jobs, [](const JobRecord& job) { return job.id == 0; });
}

// Widens the search if half of the ids matched, narrows it if fewer than an eighth did.
std::size_t adapted(std::size_t width, std::size_t looked, std::size_t found) {
  if (found * 2 >= looked) return std::min(width * 2, kMostNear);
  if (found * 8 < looked) return std::max(width / 2, kLeastNear);
  return width;
}

constexpr JobId kSlice = 4096;

// Returns the id that a put gets now, or a Reply if the server refused. Puts a job with a delay of
// a day and the lowest priority and deletes it immediately: no worker can reserve it. The tube
// stays in use, so puts on this connection need a use of their own.
Result<std::variant<JobId, client::Reply>> next_id(client::Connection& connection) {
  using IdOrRefusal = std::variant<JobId, client::Reply>;
  auto used = TRY(connection.ask("use tubectl-export"));
  if (!used.is("USING")) return IdOrRefusal(std::move(used));
  std::string put;
  client::append_put({.priority = UINT32_MAX,
                      .delay = std::chrono::hours(24),
                      .ttr = std::chrono::seconds(1),
                      .body = {}},
                     put);
  TRY(connection.send(put));
  auto inserted = TRY(connection.receive());
  const JobId id = inserted.number();
  if (id > 0) TRY(connection.ask(fmt::format("delete {}", id)));
  if (!inserted.is("INSERTED")) return IdOrRefusal(std::move(inserted));
  return IdOrRefusal(id);
}

}  // namespace

JobSource::JobSource(client::Connection& connection, std::string tube, JobState state,
                     Wanted wanted)
    : connection_(connection),
      tube_(std::move(tube)),
      state_(state),
      wanted_(wanted),
      reserves_(state == JobState::ready),
      batch_(wanted == Wanted::ids ? kBatchJobs : kFirstBatchJobs) {
  TUBED_ASSERT(state != JobState::reserved);
}

Result<std::vector<JobRecord>> JobSource::next(std::uint64_t most) {
  if (!begun_) TRY(begin());
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, batch_));
  if (count == 0 || !refusal_.line.empty()) return std::vector<JobRecord>();
  if (reserves_) {
    auto jobs = reserve(count);
    if (!jobs) return jobs;
    learn_sizes(*jobs);
    if (!jobs->empty()) return jobs;
    // No job is left, or the tube is paused.
    reserves_ = false;
  }
  auto jobs = look_around(count);
  if (jobs) learn_sizes(*jobs);
  return jobs;
}

// Watches only this tube, and uses it for the peeks.
Result<void> JobSource::begin() {
  begun_ = true;
  std::vector<std::string> commands{"use " + tube_};
  if (reserves_) {
    commands.push_back("watch " + tube_);
    auto watched = TRY(connection_.ask("list-tubes-watched"));
    // Without this list, jobs of other watched tubes could be taken.
    if (!watched.is("OK")) {
      refusal_ = std::move(watched);
      return {};
    }
    for (const std::string& other : client::list_items(watched.body)) {
      if (other != tube_) commands.push_back("ignore " + other);
    }
  }
  for (const std::string& command : commands) {
    auto answer = TRY(connection_.ask(command));
    if (!answer.is("USING") && !answer.is("WATCHING")) {
      refusal_ = std::move(answer);
      return {};
    }
  }
  return {};
}

// Returns the reserved jobs, with the state and the counters that they had before.
Result<std::vector<JobRecord>> JobSource::reserve(std::size_t most) {
  std::vector<JobRecord> jobs;
  TRY(ask_each(
      connection_, most,
      [](std::size_t, std::string& commands) { commands += "reserve-with-timeout 0\r\n"; },
      [&](std::size_t, client::Reply&& answer) {
        if (!answer.is("RESERVED")) return;
        JobRecord& job = jobs.emplace_back();
        job.id = answer.number();
        job.tube = tube_;
        if (wanted_ == Wanted::records) job.body = std::move(answer.body);
      }));
  if (wanted_ == Wanted::ids) return jobs;
  TRY(describe_jobs(connection_, jobs));
  drop_gone(jobs);
  for (JobRecord& job : jobs) {
    // Restores the values before the reservation.
    job.state = JobState::ready;
    if (job.reserves > 0) --job.reserves;
  }
  return jobs;
}

// Peeks again, up to kTries times, if other clients have removed all jobs near the first between
// the peek and the search.
Result<std::vector<JobRecord>> JobSource::look_around(std::size_t most) {
  std::vector<JobRecord> jobs;
  for (int i = 0; i < kTries && jobs.empty(); ++i) {
    auto first = TRY(connection_.ask(fmt::format("peek-{}", name_of(state_))));
    if (!first.is("FOUND")) break;
    auto found = matching_near(first.number(), most);
    if (!found) return found;
    if (wanted_ == Wanted::ids) {
      jobs = std::move(*found);
      continue;
    }
    TRY(for_each_body(connection_, *found,
                      [&](JobRecord& job) { jobs.push_back(std::move(job)); }));
  }
  return jobs;
}

// Examines the ids from `id` - below_ to `id` + above_. Returns at most `most` jobs, ordered by id.
Result<std::vector<JobRecord>> JobSource::matching_near(JobId id, std::size_t most) {
  const JobId below = std::min<JobId>(std::min(below_, most), id - 1);
  const JobId above = std::min(above_, most);
  std::vector<JobRecord> jobs(below + 1 + above);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].id = id - below + i;
  TRY(describe_jobs(connection_, jobs));
  std::erase_if(jobs, [this](const JobRecord& job) {
    return job.id == 0 || job.state != state_ || job.tube != tube_;
  });
  const auto lower = std::ranges::count_if(jobs, [id](const auto& job) { return job.id < id; });
  const auto higher = std::ranges::count_if(jobs, [id](const auto& job) { return job.id > id; });
  below_ = adapted(below_, below, static_cast<std::size_t>(lower));
  above_ = adapted(above_, above, static_cast<std::size_t>(higher));
  if (jobs.size() > most) jobs.resize(most);
  return jobs;
}

// Sets the size of the next batch from the average body of this batch.
void JobSource::learn_sizes(const std::vector<JobRecord>& jobs) {
  if (wanted_ == Wanted::ids || jobs.empty()) return;
  std::size_t bytes = 0;
  for (const JobRecord& job : jobs) bytes += job.body.size();
  const std::size_t each = std::max<std::size_t>(1, bytes / jobs.size());
  batch_ = std::clamp<std::size_t>(kBatchBytes / each, 1, kBatchJobs);
}

Result<void> for_each_body(client::Connection& connection, std::vector<JobRecord>& jobs,
                           const std::function<void(JobRecord& job)>& visit) {
  return ask_each(
      connection, jobs.size(),
      [&](std::size_t i, std::string& commands) { append_command(commands, "peek", jobs[i].id); },
      [&](std::size_t i, client::Reply&& answer) {
        if (!answer.is("FOUND")) return;
        JobRecord job = std::move(jobs[i]);
        job.body = std::move(answer.body);
        visit(job);
      });
}

Result<std::vector<JobRecord>> describe_ids(client::Connection& connection,
                                            std::span<const JobId> ids) {
  std::vector<JobRecord> jobs(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) jobs[i].id = ids[i];
  TRY(describe_jobs(connection, jobs));
  drop_gone(jobs);
  return jobs;
}

Result<std::vector<bool>> delete_jobs(client::Connection& connection,
                                      std::span<const JobRecord> jobs) {
  return do_to_each(connection, jobs, "delete", word::kDeleted);
}

Result<std::vector<bool>> touch_jobs(client::Connection& connection,
                                     std::span<const JobRecord> jobs) {
  return do_to_each(connection, jobs, "touch", word::kTouched);
}

Result<std::vector<JobRecord>> held_jobs(client::Connection& connection, const std::string& tube,
                                         client::Reply& refusal) {
  ListedJobs listed(connection, tube, "held", {});
  std::vector<JobRecord> all;
  for (;;) {
    auto jobs = TRY(listed.next(UINT64_MAX));
    if (jobs.empty()) break;
    std::ranges::move(jobs, std::back_inserter(all));
  }
  refusal = listed.refusal();
  return all;
}

Result<std::optional<JobId>> last_id(client::Connection& connection, std::optional<JobId> to) {
  if (to) return to;
  const auto next = TRY(next_id(connection));
  const auto* const refusal = std::get_if<client::Reply>(&next);
  if (refusal == nullptr) return std::optional<JobId>(std::get<JobId>(next));
  fail(kExitFailure,
       fmt::format("cannot learn the newest id: {}; with --to ID it need not be learnt",
                   meaning_of(*refusal)));
  return std::optional<JobId>();
}

Result<void> scan_jobs(
    client::Connection& connection, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit) {
  for (JobId first = from; first <= to;) {
    const JobId count = std::min(kSlice, to - first + 1);
    std::vector<JobRecord> jobs;
    const auto asked = ask_each(
        connection, count,
        [&](std::size_t i, std::string& commands) {
          fmt::format_to(std::back_inserter(commands), "stats-job {}\r\n", first + i);
        },
        [&](std::size_t, const client::Reply& answer) {
          if (!answer.is("OK")) return;
          if (auto job = record_of(client::StatsBlock(answer.body)))
            jobs.push_back(std::move(*job));
        });
    if (!asked) return asked;
    const JobId last = first + count - 1;
    const auto more = TRY(visit(std::move(jobs), last));
    if (!more || last == to) return {};
    first = last + 1;
  }
  return {};
}

}  // namespace tubed::tubectl
