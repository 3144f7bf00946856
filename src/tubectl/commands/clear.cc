// tubectl clear: deletes the jobs of a tube that no worker holds.
//
// The counts of the tubes are read first: the question shows them, they bound the work in each tube
// and state, and they are the total of the progress bar. The jobs are then deleted by one of two
// methods. clear_all() lets a JobSource find the jobs of each tube and state in batches, at a cost
// of about two commands per job. A server with flush-tube deletes the jobs itself (flush_all); jobs
// held by a group are deleted first (delete_held), because they would become ready when the group's
// members end. clear_old() needs the age of each job, which only stats-job reports, so it scans all
// ids once for all tubes. The server refuses to delete a job that a worker reserves meanwhile.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/planted.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/source.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kClearFooter =
    R"(Jobs that a worker has reserved are left, and so is what is put meanwhile.

examples:
  tubectl clear --yes work
  tubectl clear --yes --state buried work mail
  tubectl clear --yes --state buried --older-than 7d work)";

// Bounded to let the reply arrive soon and the progress be shown.
constexpr std::uint64_t kFlushedAtOnce = 10'000;

struct ClearOptions {
  Server server;
  std::vector<std::string> tubes;
  StateChoice states;
  std::uint64_t older_than = 0;
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
    auto before = TRY(take_snapshot(connection_, options_.tubes));
    FreeCounts all;
    for (const TubeCounts& tube : before.tubes) all += options_.states.of(FreeCounts(tube));
    if (const int code = ask(all); code != 0) return code;
    Progress progress("clearing", all.total());
    progress_ = &progress;
    for (const TubeCounts& tube : before.tubes) {
      deleted_.emplace(tube.name, FreeCounts());
      allowed_.emplace(tube.name, options_.states.of(FreeCounts(tube)));
    }
    const auto code = options_.older_than > 0 ? clear_old() : clear_all(before.tubes);
    if (!code) return code;
    std::string text;
    for (const auto& [tube, deleted] : deleted_) {
      auto line = TRY(print_summary(tube, deleted));
      text += line;
    }
    if (const int printed = print(text); printed != 0) return printed;
    return report_missing(before, options_.tubes, *code);
  }

 private:
  // Returns 0 to continue. The question shows the counts.
  int ask(const FreeCounts& all) const {
    if (options_.yes || all.total() == 0) return 0;
    const std::string old = options_.older_than > 0 ? " that are old enough" : "";
    const auto confirmed = confirm(fmt::format("Delete {}{}?", all.words(), old));
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
        while (left > 0) {
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
        while (left > 0) {
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
      return true;
    }));
    return 0;
  }

  // True if the question covered this job. The keys of deleted_ are the tubes to clear.
  bool is_old(const JobRecord& job) const {
    return deleted_.contains(job.tube) && job.state != JobState::reserved &&
           options_.states.has(job.state) && job.age_seconds >= options_.older_than;
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
      const Json summary{{"tube", tube}, {"deleted", deleted.json()}, {"left_reserved", reserved}};
      return to_line(summary) + "\n";
    }
    const std::string rest =
        reserved == 0 ? "" : fmt::format("; {} left to workers", jobs_in_words(reserved));
    return fmt::format("{}: deleted {}{}\n", tube, deleted.words(), rest);
  }

  const ClearOptions& options_;
  client::Connection& connection_;
  Progress* progress_ = nullptr;
  client::Reply refusal_;  // to the request for held jobs
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
    option<&ClearOptions::older_than>(
        {.names = "--older-than",
         .type = seconds(UINT64_MAX),
         .help = "Only jobs that were put at least this time ago; queries every id"}),
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
