// tubectl move: moves the jobs of one tube into another.
//
// A server with move-jobs moves them itself (move_on_server). It skips jobs that a group holds:
// these are moved by id (move_held), and are held in TO immediately. With filters, the jobs that
// match are listed, a page at a time, and moved by their ids (move_found).
//
// For a server without move-jobs, two connections are used: the source connection watches FROM and
// holds its jobs, and the target connection puts. For each batch, a JobSource takes jobs of FROM,
// JobPutter puts copies into TO, and the originals are deleted. If an original cannot be deleted,
// another client has reserved it meanwhile, and its copy is deleted. A crash leaves at most one
// batch of jobs in both tubes and loses none.
#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "client/event_loop.h"
#include "client/pipeline.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/filters.h"
#include "tubectl/jobs/putter.h"
#include "tubectl/jobs/source.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kMoveFooter =
    R"(A job keeps its body, priority, TTR, state and what is left of its delay, and, if
the server has move-jobs, its id, age and counters; otherwise these start again, and
it is deleted in FROM only after it is in TO, so that no job is lost. Jobs that a
worker has reserved are left. Jobs that wait for a group count as delayed, and wait
for it in TO. A filter needs list-jobs with filters and move-job. Ctrl-C ends it after
the jobs that are being moved, and it prints what it has moved.

examples:
  tubectl move mail mail-slow
  tubectl move --state buried --count 100 mail mail-again
  tubectl move --grep 'customer 17' mail mail-slow)";

// Bounded to let the reply arrive soon and the progress be shown.
constexpr std::uint64_t kMovedAtOnce = 10'000;
// Smaller, because each job takes a command.
constexpr std::size_t kHeldMovedAtOnce = 1'000;

struct MoveOptions {
  Server server;
  std::string from;
  std::string to;
  StateChoice states;
  JobFilters filters;
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  bool json = false;
};

// run() returns the exit code and may be called only once.
class Move {
 public:
  // `source` and `target` are two clients of the same server.
  Move(const MoveOptions& options, client::Connection& source, client::Connection& target)
      : options_(options), source_(source), target_(target), putter_(target) {}

  Result<int> run() {
    client::set_flag_on_stop_signals();
    auto before = TRY(take_snapshot(source_, {options_.from}));
    const TubeCounts* const tube = before.find(options_.from);
    if (tube == nullptr) return fail(kExitFailure, no_such_tube(options_.from));
    const FreeCounts there = options_.states.of(FreeCounts(*tube));
    left_ = std::min(there.total(), options_.count);
    const auto known = TRY(Capabilities::of(source_));
    if (options_.filters.any() && !(known.has(kFilterCapability) && known.has("move-job"))) {
      return fail(kExitFailure,
                  fmt::format("move: the server does not know {} and move-job", kFilterForm));
    }
    if (options_.filters.any()) {
      Progress progress("moving", left_);
      for (const std::string_view state : {"ready", "delayed", "held", "buried"}) {
        TRY(move_found(state, there, progress));
      }
    } else {
      Progress progress("moving", left_);
      const bool moves_held = known.has("move-job") && known.has("list-jobs");
      for (const JobState state : kFreeStates) {
        // The server counts held jobs as delayed, but move-jobs skips them.
        const std::uint64_t held =
            state == JobState::delayed ? std::min(tube->held, there[state]) : 0;
        TRY(known.has("move-jobs") ? move_on_server(state, there[state] - held, progress)
                                   : move(state, there[state] - held, progress));
        if (held > 0 && moves_held) {
          TRY(move_held(progress));
        } else {
          left_held_ += held;
        }
      }
    }
    if (const int code = print_summary(tube->reserved); code != 0) return code;
    lost_.report();
    if (left_held_ > 0) {
      fail(0, fmt::format("left out: {} waiting for a group", jobs_in_words(left_held_)));
    }
    if (!refusal_.line.empty()) return refused("move", refusal_);
    return client::stop_requested()
               ? fail(kExitFailure, "interrupted: the other jobs are where they were")
               : 0;
  }

 private:
  // Moves at most `there` jobs of one state by move-jobs, within the bound of --count.
  Result<void> move_on_server(JobState state, std::uint64_t there, Progress& progress) {
    there = std::min(there, left_);
    while (there > 0 && refusal_.line.empty() && !client::stop_requested()) {
      const std::uint64_t bound = std::min(there, kMovedAtOnce);
      auto reply = TRY(source_.ask(
          fmt::format("move-jobs {} {} {} {}", options_.from, name_of(state), options_.to, bound)));
      if (!reply.is("MOVED")) {
        refusal_ = std::move(reply);
        return {};
      }
      moved_[state] += reply.number();
      there -= bound;
      left_ -= bound;
      progress.show(moved_.total());
    }
    return {};
  }

  // Moves the jobs that a group holds now. Jobs that become ready meanwhile are moved as ready
  // jobs; jobs that a worker reserves meanwhile stay.
  Result<void> move_held(Progress& progress) {
    if (left_ == 0 || !refusal_.line.empty()) return {};
    const auto held = TRY(held_jobs(source_, options_.from, refusal_));
    std::span<const JobRecord> rest = held;
    while (!rest.empty() && left_ > 0 && refusal_.line.empty() && !client::stop_requested()) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>({rest.size(), left_, kHeldMovedAtOnce}));
      TRY(move_by_ids(rest.first(count), progress));
      rest = rest.subspan(count);
    }
    return {};
  }

  // Moves these jobs, those that still exist and that no worker holds.
  Result<void> move_by_ids(std::span<const JobRecord> jobs, Progress& progress) {
    TRY(client::ask_each(
        source_, jobs.size(),
        [&](std::size_t i, std::string& commands) {
          fmt::format_to(std::back_inserter(commands), "move-job {} {}\r\n", jobs[i].id,
                         options_.to);
        },
        [&](std::size_t i, client::Reply&& answer) {
          if (answer.is("MOVED")) {
            ++moved_[jobs[i].state];
          } else if (!answer.is("NOT_FOUND") && refusal_.line.empty()) {
            refusal_ = std::move(answer);
          }
        }));
    left_ -= jobs.size();
    progress.show(moved_.total());
    return {};
  }

  // Moves the jobs in a state that match the filters, at most as many as existed at the start.
  Result<void> move_found(std::string_view listed, const FreeCounts& there, Progress& progress) {
    const JobState state = state_named(listed).value_or(JobState::delayed);
    if (!options_.states.has(state)) return {};
    std::uint64_t most = there[state] - std::min(there[state], moved_[state]);
    ListedJobs found(source_, options_.from, listed, options_.filters);
    while (refusal_.line.empty()) {
      const auto jobs = TRY(found.next(std::min(most, left_)));
      if (jobs.empty()) break;
      TRY(move_by_ids(jobs, progress));
      most -= jobs.size();
    }
    if (refusal_.line.empty()) refusal_ = found.refusal();
    return {};
  }

  // As move_on_server(), but this client moves the jobs.
  Result<void> move(JobState state, std::uint64_t there, Progress& progress) {
    JobSource source(source_, options_.from, state, JobSource::Wanted::records);
    there = std::min(there, left_);
    while (there > 0 && refusal_.line.empty() && !client::stop_requested()) {
      auto jobs = TRY(source.next(there));
      if (jobs.empty()) break;
      there -= jobs.size();
      left_ -= jobs.size();
      TRY(move_batch(jobs));
      progress.show(moved_.total());
    }
    if (!source.refusal().line.empty()) refusal_ = source.refusal();
    return {};
  }

  // Reserved jobs whose copies are refused return unchanged when the connection ends.
  Result<void> move_batch(std::vector<JobRecord>& jobs) {
    for (JobRecord& job : jobs) job.tube = options_.to;
    const auto results = TRY(putter_.put(jobs));
    std::vector<JobRecord> originals;
    std::vector<JobRecord> copies;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const PutResult& result = results[i];
      if (result.id == 0) {
        refusal_ = result.refusal;
        continue;
      }
      copies.emplace_back().id = result.id;
      lost_.count(jobs[i], putter_);
      originals.push_back(std::move(jobs[i]));
    }
    return delete_originals(originals, std::move(copies));
  }

  // Deletes the originals. If another client has taken an original, deletes its copy.
  Result<void> delete_originals(const std::vector<JobRecord>& originals,
                                std::vector<JobRecord> copies) {
    const auto deleted = TRY(delete_jobs(source_, originals));
    std::vector<JobRecord> unwanted;
    for (std::size_t i = 0; i < originals.size(); ++i) {
      if (deleted[i]) {
        ++moved_[originals[i].state];
      } else {
        unwanted.push_back(std::move(copies[i]));
      }
    }
    const auto undone = delete_jobs(target_, unwanted);
    return undone ? Result<void>() : undone.error();
  }

  int print_summary(std::uint64_t reserved) const {
    if (options_.json) {
      const Json summary{{"from", options_.from},
                         {"to", options_.to},
                         {"moved", moved_.json()},
                         {"left-reserved", reserved}};
      return print(to_line(summary) + "\n");
    }
    const std::string rest =
        reserved == 0 ? "" : fmt::format("; {} left to workers", jobs_in_words(reserved));
    return print(fmt::format("moved {} from {} to {}{}\n", moved_.words(), options_.from,
                             options_.to, rest));
  }

  const MoveOptions& options_;
  client::Connection& source_;
  client::Connection& target_;
  JobPutter putter_;
  std::uint64_t left_ = 0;
  std::uint64_t left_held_ = 0;  // held by a group, and not moved
  FreeCounts moved_;
  LostTags lost_;
  client::Reply refusal_;
};

Result<int> run_move(const MoveOptions& options) {
  if (options.from == options.to) {
    return fail(kExitUsage, "FROM and TO are the same tube; try tubectl move --help");
  }
  auto source = TRY(connect(options.server));
  auto target = TRY(connect(options.server));
  return Move(options, source, target).run();
}

constexpr std::array kMoveOptions{
    option<&MoveOptions::from>(
        {.names = "FROM", .type = kTube, .help = "Whose jobs", .required = true}),
    option<&MoveOptions::to>(
        {.names = "TO", .type = kTube, .help = "Where they go", .required = true}),
    server_option<&MoveOptions::server>(),
    kMaxReplyOption,
    state_option<&MoveOptions::states>(),
    grep_option<&MoveOptions::filters>(),
    older_option<&MoveOptions::filters>(),
    newer_option<&MoveOptions::filters>(),
    priority_over_option<&MoveOptions::filters>(),
    priority_below_option<&MoveOptions::filters>(),
    failures_option<&MoveOptions::filters>(),
    tag_option<&MoveOptions::filters>(),
    option<&MoveOptions::count>(
        {.names = "--count", .type = count(1), .help = "Move at most this number of jobs [all]"}),
    json_option<&MoveOptions::json>(),
};

}  // namespace

const Subcommand& move_command() {
  static constexpr Subcommand kCommand =
      runs<MoveOptions, run_move>({.name = "move",
                                   .group = kManyGroup,
                                   .summary = "Move the jobs of a tube into another",
                                   .options = kMoveOptions,
                                   .footer = kMoveFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
