// tubectl export: writes the jobs of a server as lines of JSON; with --remove it also deletes them.
//
// Without --remove, the export only reads: it scans all ids with stats-job and peeks the bodies of
// the selected jobs. The cost is one command per id that was ever assigned, or per id of --from to
// --to. Jobs that a group may hold come last, because an import must put the members of the group
// before them; until then their records are kept without bodies. --remove refuses held jobs: to
// keep them from becoming ready it would have to delete them, and so write them, before the members
// of their groups, but an import needs them last.
// With --remove it proceeds by tube and state:
// 1. A JobSource reserves or finds a batch of jobs.
// 2. hand_over() touches the jobs that it holds, and drops those whose TTR has expired.
// 3. A piece of the batch is written and flushed; to a regular file also synced.
// 4. The jobs of that piece are deleted, and the next piece follows.
// A job is deleted only after its line is written, so a crash duplicates at most one piece and
// loses no job.
//
// SIGINT and SIGTERM are checked between batches, with and without --remove.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/files.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/filters.h"
#include "tubectl/jobs/source.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kExportFooter =
    R"(One job a line, by id; jobs that wait for a group come after all others. Jobs that a worker has reserved are left out, and counted on
standard error. No job is changed. To find the jobs, a server that has list-jobs lists
them; otherwise every id is queried.

--remove takes the jobs of one tube after the other and deletes each after its line
was written, with a FILE after the line was synced to disk. FILE must not exist then.
If the reader of a pipe fails, the jobs in the pipe are lost: use a FILE for jobs that
must not be lost.

--remove refuses tubes with jobs that wait for a group. Such a job must be deleted
before the members of its group, or it is ready too early, but an import needs its
line after theirs, and no job is deleted before its line is written. Stop the
producers of such a tube, pause it, export it without --remove, and then clear it.

examples:
  tubectl export > jobs.jsonl
  tubectl export -t mail --state buried -o buried.jsonl
  tubectl export -t mail --remove -o mail.jsonl
  tubectl import -t post mail.jsonl
  tubectl export -t mail --remove | tubectl import -t post --rest rest.jsonl)";

// Amount that --remove writes before it deletes. A pipe buffers this much, so the write hardly
// blocks; a file is synced after each piece.
constexpr std::size_t kPipePieceBytes = 64 * 1024;
constexpr std::size_t kFilePieceBytes = 1024 * 1024;
// How many jobs are described before their bodies are asked for.
constexpr std::size_t kDescribedAtOnce = 4096;
// Well below the shortest TTR, a second.
constexpr std::chrono::milliseconds kTouchEvery{200};

struct ExportOptions {
  Server server;
  std::vector<std::string> tubes;
  StateChoice states;
  JobId from = 1;
  std::optional<JobId> to;
  bool reserved = false;
  bool remove = false;
  bool json = false;
  std::string file;
};

// The destination of the lines: standard output, or a file that open() creates. Every function that
// writes fails with an error that names the file.
class LineOutput {
 public:
  static Result<LineOutput> open(const std::string& path, bool must_be_new) {
    if (path.empty()) return LineOutput(stdout, "standard output");
    const int how = O_WRONLY | O_CREAT | O_CLOEXEC | (must_be_new ? O_EXCL : 0);
    const int descriptor = ::open(path.c_str(), how, 0666);
    if (descriptor < 0) return client::system_error(fmt::format("cannot write {}", path));
    if (must_be_new) TRY(sync_directory_of(path));
    LineOutput output(::fdopen(descriptor, "w"), path);
    output.has_old_ = output.is_file_ && !must_be_new;
    return output;
  }

  bool is_file() const { return is_file_; }

  // Returns the number of bytes.
  Result<std::size_t> write(const JobRecord& job) {
    TRY(drop_old());
    const std::string line = to_line(as_json(job)) + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file_) == line.size()) return line.size();
    return cannot();
  }
  // Flushes the output; to a regular file also syncs it.
  Result<void> sync() {
    TRY(drop_old());
    if (std::fflush(file_) == 0 && (!is_file_ || ::fsync(::fileno(file_)) == 0)) return {};
    return cannot();
  }

 private:
  LineOutput(std::FILE* file, std::string name) : file_(file), name_(std::move(name)) {
    struct stat status {};
    is_file_ = ::fstat(::fileno(file_), &status) == 0 && S_ISREG(status.st_mode);
  }

  // Truncates the file before the first line is written.
  Result<void> drop_old() {
    if (!std::exchange(has_old_, false) || ::ftruncate(::fileno(file_), 0) == 0) return {};
    return cannot();
  }
  Error cannot() const { return client::system_error(fmt::format("cannot write {}", name_)); }

  std::FILE* file_;  // open until the process ends
  std::string name_;
  bool is_file_;
  bool has_old_ = false;
};

// run() returns the exit code and may be called only once. After a failed write, the export ends at
// the next check of write_error_.
class Export {
 public:
  Export(const ExportOptions& options, client::Connection& connection, LineOutput output)
      : options_(options), connection_(connection), output_(std::move(output)) {}

  Result<int> run() {
    client::set_flag_on_stop_signals();
    auto before = TRY(take_snapshot(connection_, options_.tubes));
    if (options_.remove && options_.states.has(JobState::delayed)) {
      const auto holds = [](const TubeCounts& tube) { return tube.held > 0; };
      if (const auto tube = std::ranges::find_if(before.tubes, holds); tube != before.tubes.end()) {
        return fail(kExitFailure, held_is_refused(*tube));
      }
    }
    auto done = options_.remove ? remove_all(before.tubes) : look_at_all(before.tubes);
    if (!done) return done;
    if (write_error_) return fail(kExitIo, write_error_->message);
    report_count(reserved_, "that workers have reserved", "left out");
    report_count(run_out_, "whose time ran out before they could be written", "left out");
    report_count(taken_, "that others had before they could be deleted", "may be done twice");
    return report_missing(before, options_.tubes, *done);
  }

 private:
  static std::string held_is_refused(const TubeCounts& tube) {
    return fmt::format(
        "export: {} has {} waiting for a group, which --remove would make ready; name other states "
        "with --state, or export without --remove",
        tube.name, jobs_in_words(tube.held));
  }

  bool wants_tube(const std::string& tube) const {
    return options_.tubes.empty() ||
           std::ranges::find(options_.tubes, tube) != options_.tubes.end();
  }

  // Returns the exit code; write errors are in write_error_.
  Result<int> look_at_all(const std::vector<TubeCounts>& tubes) {
    const auto known = TRY(Capabilities::of(connection_));
    const auto code = known.has("list-jobs") ? look_at_listed(tubes) : look_at_ids();
    if (!code || *code != 0) return code;
    TRY(write_bodies(std::exchange(held_, {})));
    if (!write_error_) keep(output_.sync());
    if (!stopped_at_ || write_error_) return 0;
    return fail(kExitFailure,
                fmt::format("interrupted: the jobs up to id {} are written; continue with "
                            "--from {}, to another file",
                            *stopped_at_, *stopped_at_ + 1));
  }

  // Looks at each id.
  Result<int> look_at_ids() {
    const auto newest = TRY(last_id(connection_, options_.to));
    if (!newest) return kExitFailure;
    const JobId last = *newest;
    Progress progress("looking at ids", last < options_.from ? 0 : last - options_.from + 1);
    TRY(scan_jobs(connection_, options_.from, last,
                  [&](std::vector<JobRecord> jobs, JobId seen) -> Result<bool> {
                    TRY(write_wanted(std::move(jobs)));
                    progress.show(seen - options_.from + 1);
                    if (client::stop_requested() && seen < last) stopped_at_ = seen;
                    return !write_error_ && !stopped_at_;
                  }));
    return 0;
  }

  // Looks at the jobs that the server lists. Memory: the ids of all of them.
  Result<int> look_at_listed(const std::vector<TubeCounts>& tubes) {
    client::Reply refusal;
    const auto ids = TRY(listed_ids(tubes, refusal));
    if (!refusal.line.empty()) return refused("export", refusal);
    Progress progress("looking at jobs", ids.size());
    for (std::span<const JobId> rest = ids; !rest.empty() && !write_error_ && !stopped_at_;) {
      const auto part = rest.first(std::min(rest.size(), kDescribedAtOnce));
      rest = rest.subspan(part.size());
      auto jobs = TRY(describe_ids(connection_, part));
      TRY(write_wanted(std::move(jobs)));
      progress.show(ids.size() - rest.size());
      if (client::stop_requested() && !rest.empty()) stopped_at_ = part.back();
    }
    return 0;
  }

  // The ids of the jobs of the tubes, in order, each once: a job that moves from one tube to
  // another meanwhile may be listed twice.
  Result<std::vector<JobId>> listed_ids(const std::vector<TubeCounts>& tubes,
                                        client::Reply& refusal) {
    std::vector<JobId> ids;
    for (const TubeCounts& tube : tubes) {
      ListedJobs listed(connection_, tube.name, "all", {});
      listed.skip_to(options_.from);
      bool ends = false;
      while (!ends) {
        const auto jobs = TRY(listed.next(UINT64_MAX));
        for (const JobRecord& job : jobs) {
          ends = options_.to && job.id > *options_.to;
          if (ends) break;
          ids.push_back(job.id);
        }
        ends = ends || jobs.empty();
      }
      if (refusal.line.empty()) refusal = listed.refusal();
    }
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  Result<void> write_wanted(std::vector<JobRecord> jobs) {
    std::erase_if(jobs, [this](JobRecord& job) {
      if (!is_wanted(job)) return true;
      if (!may_be_held(job)) return false;
      held_.push_back(std::move(job));
      return true;
    });
    return write_bodies(std::move(jobs));
  }

  Result<void> write_bodies(std::vector<JobRecord> jobs) {
    return for_each_body(connection_, jobs, [this](const JobRecord& job) {
      if (!write_error_) write(job);
    });
  }

  // Also counts the reserved jobs that are left out, for the final report.
  bool is_wanted(const JobRecord& job) {
    if (!wants_tube(job.tube)) return false;
    if (job.state != JobState::reserved) return options_.states.has(job.state);
    if (!options_.reserved) ++reserved_;
    return options_.reserved;
  }

  Result<int> remove_all(const std::vector<TubeCounts>& tubes) {
    FreeCounts all;
    for (const TubeCounts& tube : tubes) all += options_.states.of(FreeCounts(tube));
    Progress progress("exporting", all.total());
    for (const TubeCounts& tube : tubes) {
      reserved_ += tube.reserved;
      const FreeCounts counts = options_.states.of(FreeCounts(tube));
      for (const JobState state : kFreeStates) {
        TRY(remove(tube.name, state, counts[state], progress));
      }
    }
    if (!refusal_.line.empty()) return refused("export", refusal_);
    if (!write_error_ && client::stop_requested()) {
      return fail(kExitFailure, "interrupted: what was not written is still there");
    }
    return 0;
  }

  // Removes at most the number of jobs that existed at the start, or it might never end while other
  // clients put jobs.
  Result<void> remove(const std::string& tube, JobState state, std::uint64_t left,
                      Progress& progress) {
    JobSource source(connection_, tube, state, JobSource::Wanted::records);
    while (left > 0 && !write_error_ && refusal_.line.empty() && !client::stop_requested()) {
      auto jobs = TRY(source.next(left));
      if (jobs.empty()) break;
      left -= jobs.size();
      TRY(hand_over(std::move(jobs), source.held(), progress));
    }
    if (!source.refusal().line.empty()) refusal_ = source.refusal();
    return {};
  }

  // Writes and deletes the jobs, piece by piece. The reader of a pipe may block the write for
  // longer than a TTR: the remaining jobs may then belong to other workers, and are not written.
  Result<void> hand_over(std::vector<JobRecord> jobs, bool held, Progress& progress) {
    std::optional<std::chrono::steady_clock::time_point> touched;
    while (!jobs.empty()) {
      if (const auto now = std::chrono::steady_clock::now();
          held && (!touched || now - *touched >= kTouchEvery)) {
        TRY(touch(jobs));
        touched = now;
      }
      const std::size_t count = write_piece(jobs);
      if (write_error_) return {};  // held jobs return when the connection ends
      const auto deleted = TRY(delete_jobs(connection_, std::span(jobs).first(count)));
      taken_ += static_cast<std::uint64_t>(std::ranges::count(deleted, false));
      jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(count));
      done_ += count;
      progress.show(done_);
    }
    return {};
  }

  // Touches the jobs and keeps only those that are still held.
  Result<void> touch(std::vector<JobRecord>& jobs) {
    const auto touched = TRY(touch_jobs(connection_, jobs));
    std::vector<JobRecord> kept;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (touched[i]) kept.push_back(std::move(jobs[i]));
    }
    run_out_ += jobs.size() - kept.size();
    jobs = std::move(kept);
    return {};
  }

  // Returns the number of jobs written.
  std::size_t write_piece(std::span<const JobRecord> jobs) {
    const std::size_t most = output_.is_file() ? kFilePieceBytes : kPipePieceBytes;
    std::size_t count = 0;
    for (std::size_t bytes = 0; count < jobs.size() && bytes < most && !write_error_; ++count) {
      bytes += write(jobs[count]);
    }
    if (!write_error_) keep(output_.sync());
    return count;
  }

  std::size_t write(const JobRecord& job) {
    const auto written = output_.write(job);
    if (!written) write_error_ = written.error();
    return written ? written.value() : 0;
  }

  // A note on standard error that does not change the exit code.
  static void report_count(std::uint64_t count, std::string_view which, std::string_view what) {
    if (count > 0) fail(0, fmt::format("{}: {} {}", what, jobs_in_words(count), which));
  }

  void keep(const Result<void>& written) {
    if (!written) write_error_ = written.error();
  }

  const ExportOptions& options_;
  client::Connection& connection_;
  LineOutput output_;
  std::optional<JobId> stopped_at_;  // the last job that was looked at before a signal
  std::optional<Error> write_error_;
  client::Reply refusal_;
  std::vector<JobRecord> held_;  // held by a group, or possibly; written after all others
  std::uint64_t reserved_ = 0;
  std::uint64_t run_out_ = 0;  // not written because their TTR expired
  std::uint64_t taken_ = 0;    // written, but taken by other clients
  std::uint64_t done_ = 0;
};

Result<int> run_export(const ExportOptions& options) {
  auto connection = TRY(connect(options.server));
  auto output = LineOutput::open(options.file, options.remove);
  if (!output) return fail(kExitIo, output.error().message);
  return Export(options, connection, std::move(*output)).run();
}

constexpr std::array kExportOptions{
    server_option<&ExportOptions::server>(),
    kMaxReplyOption,
    tube_option_or_word<&ExportOptions::tubes>(
        "Only jobs of this tube; several times for more [all]"),
    state_option<&ExportOptions::states>(),
    option<&ExportOptions::reserved>(
        {.names = "--reserved", .help = "Those that a worker has reserved, too"}),
    option<&ExportOptions::from>({.names = "--from",
                                  .type = count(1, UINT64_MAX, "ID"),
                                  .help = "Begin with this id",
                                  .shows_default = true}),
    option<&ExportOptions::to>({.names = "--to",
                                .type = count(1, UINT64_MAX, "ID"),
                                .help = "End with this id [the newest]"}),
    option<&ExportOptions::remove>({.names = "--remove",
                                    .help = "Delete each job when its line is written",
                                    .excludes = {"--reserved", "--from", "--to"}}),
    option<&ExportOptions::file>(
        {.names = "-o,--output", .type = kFile, .help = "Write to this file [standard output]"}),
    json_option<&ExportOptions::json>("Accepted; the output is always JSON"),
};

}  // namespace

const Subcommand& export_command() {
  static constexpr Subcommand kCommand =
      runs<ExportOptions, run_export>({.name = "export",
                                       .group = kManyGroup,
                                       .summary = "Write jobs as lines of JSON, or move them out",
                                       .options = kExportOptions,
                                       .footer = kExportFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
