// tubectl clear: deletes the jobs of a tube that no worker holds.
//
// The counts of the tubes are read first: the question shows them, they bound the work in each tube
// and state, and they are the total of the progress bar. The jobs are then deleted by one of three
// methods. clear_all() lets a JobSource find the jobs of each tube and state in batches, at a cost
// of about two commands per job. A server with flush-tube deletes the jobs itself (flush_all); jobs
// held by a group are deleted first (delete_held), because they would become ready when the group's
// members end. With filters, clear_found() lists the jobs that match, a page at a time, and deletes
// them by their ids. For a server without filters, clear_old() asks for the age of each job by
// stats-job: it scans all ids once for all tubes. The server refuses to delete a job that a worker
// reserves meanwhile.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/planted.h"
#include "client/address.h"
#include "client/event_loop.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/filters.h"
#include "tubectl/jobs/source.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kClearFooter =
    R"(Jobs that a worker has reserved are left, and so is what is put meanwhile. With a
filter the server must have list-jobs with filters, which beanstalkd has not; there
--older-than alone queries every id. With a filter, Ctrl-C ends it after the jobs that
are being deleted, and it prints what it has deleted.

examples:
  tubectl clear --yes work
  tubectl clear --yes --state buried work mail
  tubectl clear --yes --state buried --older-than 7d work
  tubectl clear --yes --grep 'customer 17' work)";

// Bounded to let the reply arrive soon and the progress be shown.
constexpr std::uint64_t kFlushedAtOnce = 10'000;

struct ClearOptions {
  Server server;
  std::vector<std::string> tubes;
  StateChoice states;
  JobFilters filters;
  std::optional<JobId> to;
  bool yes = false;
  bool json = false;
};

// run() returns the exit code and may be called only once. It prints a summary line for each tube.
class Clear {
 public:
  Clear(const ClearOptions& options, client::Connection& connection)
      : options_(options), connection_(connection) {}

  Result<int> run() {
    if (options_.filters.any()) {
      const auto known = TRY(Capabilities::of(connection_));
      server_filters_ = known.has(kFilterCapability);
      JobFilters others = options_.filters;
      others.older_than.reset();
      if (!server_filters_ && others.any()) {
        return fail(kExitFailure, fmt::format("clear: the server does not know {}", kFilterForm));
      }
    }
    auto before = TRY(take_snapshot(connection_, options_.tubes));
    FreeCounts all;
    for (const TubeCounts& tube : before.tubes) all += options_.states.of(FreeCounts(tube));
    if (const int code = ask(all); code != 0) return code;
    client::set_flag_on_stop_signals();
    Progress progress("clearing", all.total());
    progress_ = &progress;
    for (const TubeCounts& tube : before.tubes) {
      deleted_.emplace(tube.name, FreeCounts());
      allowed_.emplace(tube.name, options_.states.of(FreeCounts(tube)));
    }
    const auto code = options_.filters.any() ? clear_some(before.tubes) : clear_all(before.tubes);
    if (!code) return code;
    std::string text;
    for (const auto& [tube, deleted] : deleted_) {
      auto line = TRY(print_summary(tube, deleted));
      text += line;
    }
    if (const int printed = print(text); printed != 0) return printed;
    const int exit_code = report_missing(before, options_.tubes, *code);
    if (!client::stop_requested() || done_ >= all.total()) return exit_code;
    return fail(kExitFailure, "interrupted: the other jobs are there; the same command goes on");
  }

 private:
  // Returns 0 to continue. The question shows the counts.
  int ask(const FreeCounts& all) const {
    if (options_.yes || all.total() == 0) return 0;
    const std::string some = options_.filters.any() ? " that match" : "";
    const auto confirmed = confirm(fmt::format("Delete {} jobs of {} on {}{}?", all.words(),
                                               tubes_in_words(options_.tubes),
                                               to_string(options_.server.target), some));
    if (!confirmed) {
      return fail(kExitUsage, fmt::format("{}; --yes deletes unasked", confirmed.error().message));
    }
    return confirmed.value() ? 0 : fail(kExitFailure, "nothing was deleted");
  }

  // Deletes at most the number of jobs that existed at the start, or it might never end while other
  // clients put jobs.
  Result<int> clear_all(const std::vector<TubeCounts>& tubes) {
    const auto known = TRY(Capabilities::of(connection_));
    if (known.has("flush-tube:state")) {
      if (known.has("list-jobs")) TRY(delete_held(tubes));
      return refusal_.line.empty() ? flush_all(tubes) : refused("clear", refusal_);
    }
    for (const TubeCounts& tube : tubes) {
      for (const JobState state : kFreeStates) {
        std::uint64_t left = options_.states.of(FreeCounts(tube))[state];
        JobSource source(connection_, tube.name, state, JobSource::Wanted::ids);
        while (left > 0 && !client::stop_requested()) {
          const auto jobs = TRY(source.next(left));
          if (jobs.empty()) break;
          TRY(delete_all(jobs));
          left -= jobs.size();
        }
        if (!source.refusal().line.empty()) return refused("clear", source.refusal());
      }
    }
    return 0;
  }

  // Deletes the held jobs with the lowest ids, at most as many as existed at the start. The newest
  // of these are deleted first: a job that waits for a group is usually younger than the group's
  // members, which may be held themselves.
  Result<void> delete_held(const std::vector<TubeCounts>& tubes) {
    std::vector<JobRecord> all;
    for (const TubeCounts& tube : tubes) {
      if (tube.held == 0 || !options_.states.has(JobState::delayed)) continue;
      auto held = TRY(held_jobs(connection_, tube.name, refusal_));
      if (held.size() > tube.held && !TUBED_PLANTED(clear_held_without_bound)) {
        held.resize(tube.held);
      }
      std::ranges::move(held, std::back_inserter(all));
    }
    std::ranges::sort(all, std::ranges::greater(), &JobRecord::id);
    return delete_all(all);
  }

  // As clear_all(), but the server deletes the jobs.
  Result<int> flush_all(const std::vector<TubeCounts>& tubes) {
    for (const TubeCounts& tube : tubes) {
      for (const JobState state : kFreeStates) {
        std::uint64_t left = options_.states.of(FreeCounts(tube))[state];
        // delete_held() has deleted the held jobs.
        if (state == JobState::delayed) left -= std::min(left, tube.held);
        while (left > 0 && !client::stop_requested()) {
          const std::uint64_t bound = std::min(left, kFlushedAtOnce);
          const auto reply = TRY(connection_.ask(
              fmt::format("flush-tube {} {} {}", tube.name, name_of(state), bound)));
          if (!reply.is("FLUSHED")) return refused("clear", reply);
          deleted_[tube.name][state] += reply.number();
          done_ += reply.number();
          progress_->show(done_);
          left -= bound;
        }
      }
    }
    return 0;
  }

  Result<int> clear_some(const std::vector<TubeCounts>& tubes) {
    if (!server_filters_) return clear_old();
    client::set_flag_on_stop_signals();
    for (const TubeCounts& tube : tubes) {
      // First the jobs that a group holds: they would become ready when its members end.
      for (const std::string_view state : {"held", "ready", "delayed", "buried"}) {
        TRY(clear_found(tube.name, state));
        if (!refusal_.line.empty()) return refused("clear", refusal_);
      }
    }
    return 0;
  }

  // Deletes the jobs of a tube and a state that match the filters, at most as many as existed at
  // the start, and of those that a group holds the newest first, as delete_held() does.
  Result<void> clear_found(const std::string& tube, std::string_view listed) {
    const bool is_held = listed == "held";
    const JobState state = state_named(listed).value_or(JobState::delayed);
    if (!options_.states.has(state)) return {};
    std::uint64_t left = allowed_[tube][state] - deleted_[tube][state];
    ListedJobs found(connection_, tube, listed, options_.filters);
    std::vector<JobRecord> all;
    while (left > 0) {
      auto jobs = TRY(found.next(left));
      if (jobs.empty()) break;
      std::erase_if(jobs,
                    [this](const JobRecord& job) { return options_.to && job.id > *options_.to; });
      left -= jobs.size();
      if (is_held) {
        std::ranges::move(jobs, std::back_inserter(all));
      } else {
        TRY(delete_all(jobs));
      }
    }
    refusal_ = found.refusal();
    if (client::stop_requested()) all.clear();
    std::ranges::sort(all, std::ranges::greater(), &JobRecord::id);
    return delete_all(all);
  }

  // Scans the ids once for all tubes.
  Result<int> clear_old() {
    const auto newest = TRY(last_id(connection_, options_.to));
    if (!newest) return kExitFailure;
    const JobId last = *newest;
    TRY(scan_jobs(connection_, 1, last, [this](std::vector<JobRecord> jobs, JobId) -> Result<bool> {
      auto old = deleted_;  // including `jobs`
      std::erase_if(jobs, [this, &old](const JobRecord& job) {
        if (!is_old(job)) return true;
        if (TUBED_PLANTED(clear_old_without_bound)) return false;
        return ++old[job.tube][job.state] > allowed_[job.tube][job.state];
      });
      TRY(delete_all(jobs));
      return !client::stop_requested();
    }));
    return 0;
  }

  // True if the question covered this job. The keys of deleted_ are the tubes to clear.
  bool is_old(const JobRecord& job) const {
    return deleted_.contains(job.tube) && job.state != JobState::reserved &&
           options_.states.has(job.state) &&
           job.age_seconds >= options_.filters.older_than.value_or(0);
  }

  Result<void> delete_all(const std::vector<JobRecord>& jobs) {
    const auto deleted = TRY(delete_jobs(connection_, jobs));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!deleted[i]) continue;
      ++deleted_[jobs[i].tube][jobs[i].state];
      ++done_;
    }
    progress_->show(done_);
    return {};
  }

  // Reads the number of reserved jobs again, because workers may have reserved jobs since the first
  // count.
  Result<std::string> print_summary(const std::string& tube, const FreeCounts& deleted) {
    auto after = TRY(take_snapshot(connection_, {tube}));
    const TubeCounts* const left = after.find(tube);
    const std::uint64_t reserved = left == nullptr ? 0 : left->reserved;
    if (options_.json) {
      const Json summary{{"tube", tube}, {"deleted", deleted.json()}, {"left-reserved", reserved}};
      return to_line(summary) + "\n";
    }
    const std::string rest =
        reserved == 0 ? "" : fmt::format("; {} left to workers", jobs_in_words(reserved));
    return fmt::format("{}: deleted {}{}\n", tube, deleted.words(), rest);
  }

  const ClearOptions& options_;
  client::Connection& connection_;
  Progress* progress_ = nullptr;
  client::Reply refusal_;  // to the request for a list of jobs
  bool server_filters_ = false;
  std::uint64_t done_ = 0;
  // For each tube that existed at the start.
  std::map<std::string, FreeCounts> allowed_;
  std::map<std::string, FreeCounts> deleted_;
};

Result<int> run_clear(const ClearOptions& options) {
  auto connection = TRY(connect(options.server));
  return Clear(options, connection).run();
}

constexpr std::array kClearOptions{
    tube_option_or_word<&ClearOptions::tubes>("Whose jobs", true),
    server_option<&ClearOptions::server>(),
    kMaxReplyOption,
    state_option<&ClearOptions::states>(),
    grep_option<&ClearOptions::filters>(),
    older_option<&ClearOptions::filters>(),
    newer_option<&ClearOptions::filters>(),
    priority_over_option<&ClearOptions::filters>(),
    priority_below_option<&ClearOptions::filters>(),
    failures_option<&ClearOptions::filters>(),
    tag_option<&ClearOptions::filters>(),
    option<&ClearOptions::to>({.names = "--to",
                               .type = count(1, UINT64_MAX, "ID"),
                               .help = "With --older-than: end with this id [the newest]",
                               .needs = "--older-than"}),
    option<&ClearOptions::yes>({.names = "-y,--yes", .help = "Do not ask"}),
    json_option<&ClearOptions::json>(),
};

}  // namespace

const Subcommand& clear_command() {
  static constexpr Subcommand kCommand =
      runs<ClearOptions, run_clear>({.name = "clear",
                                     .group = kManyGroup,
                                     .summary = "Delete the jobs of a tube that no worker has",
                                     .options = kClearOptions,
                                     .footer = kClearFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
