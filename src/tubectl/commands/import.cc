// tubectl import: puts jobs from lines of JSON.
//
// Lines are collected into batches (kJobsAtOnce, kBytesAtOnce), which JobPutter puts. The first
// line that is malformed, too long or refused ends the import:
// 1. The jobs before it are put and counted.
// 2. Jobs after it that the same batch has put are deleted again; an import with --skip then puts
//    every job exactly once.
// 3. With --rest, the jobs of the batch that are not in the server, the line that could not be
//    read, and all unread input are written to the file and synced.
// So with --rest every job of the input is either imported or in the file, except for lines that
// --skip passes over. SIGINT and SIGTERM end an import from a regular file between two batches;
// input from a pipe exists nowhere else, so it is read to its end.
#include <algorithm>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "os/descriptor.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/files.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/jobs/putter.h"
#include "tubectl/jobs/source.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kImportFooter =
    R"(Lines are as tubectl export writes them; a line with only a body is valid:
{"body":"hello"}. Buried jobs are buried again, reserved jobs become ready; ids,
ages and counters start again. Tags that the server does not know are left out,
and counted on standard error.

A job that waits for a group is held again if members of the group were put before
it, or are put within a second: the lines of members come first.

The import ends at the first line that is not valid or that the server refuses, and
prints its number. With --rest, this line and all later lines are written to FILE, to
be imported later: for input that can be read only once.

With --rest nothing is lost if the server cannot be reached: all lines are in FILE.

examples:
  tubectl import jobs.jsonl
  tubectl import --skip 1 -t again jobs.jsonl
  tubectl export -t mail --remove | tubectl import -t post --rest rest.jsonl)";

// The meaning of NOT_FOUND: reserve-job is the only command of an import that finds a job.
constexpr std::string_view kNotReserved =
    "it cannot be reserved to be buried: its concurrency key or the policy of its tube has no room";

constexpr std::size_t kJobsAtOnce = 256;
constexpr std::size_t kBytesAtOnce = 1024 * 1024;
// JSON takes at most six bytes for a byte of the body; the rest of a line is short.
constexpr std::size_t kBytesInJson = 6;
constexpr std::size_t kOtherKeys = 64 * 1024;

// The longest line that can hold a body of `most_body` bytes. A longer line is refused without
// being stored.
std::size_t longest_line(std::size_t most_body) {
  return kBytesInJson * most_body + kOtherKeys;
}

struct ImportOptions {
  Server server;
  std::string file = "-";
  std::string tube;
  std::string rest;
  std::uint64_t skip = 0;
  bool json = false;
};

// Why the import ended early.
struct Failure {
  int code;
  std::uint64_t line;  // the first line that was not imported
  std::string reason;
};

// The file for the lines that were not imported. open() creates it before the import starts, to
// find out whether it can be written; it is removed if nothing was written. Precondition of write()
// and sync(): open() succeeded.
class RestFile {
 public:
  RestFile() = default;
  RestFile(const RestFile&) = delete;
  RestFile& operator=(const RestFile&) = delete;
  ~RestFile() {
    if (file_ && !used_) ::unlink(name_.c_str());
  }

  Result<void> open(const std::string& name) {
    name_ = name;
    file_ = os::Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    return file_ ? sync_directory_of(name) : cannot();
  }
  bool wanted() const { return static_cast<bool>(file_); }
  const std::string& name() const { return name_; }
  bool used() const { return used_; }

  Result<void> write(std::string_view bytes) {
    used_ = used_ || !bytes.empty();
    return write_all(file_, bytes) ? Result<void>() : cannot();
  }
  Result<void> sync() { return ::fsync(file_.number()) == 0 ? Result<void>() : cannot(); }

 private:
  Error cannot() const { return client::system_error(fmt::format("cannot write {}", name_)); }

  std::string name_;
  os::Descriptor file_;
  bool used_ = false;
};

// Writes the unread input, except for lines that --skip passes over.
Result<void> save_behind(const ImportOptions& options, LineInput& input, RestFile& rest) {
  TRY(input.pass_over(options.skip));
  auto written = input.rest([&](std::string_view piece) { return rest.write(piece); });
  return written ? rest.sync() : written;
}

// run() returns the exit code and may be called only once. `options`, `connection` and `rest`
// outlive the object.
class Import {
 public:
  Import(const ImportOptions& options, client::Connection& connection, LineInput input,
         RestFile& rest)
      : options_(options),
        connection_(connection),
        putter_(connection),
        input_(std::move(input)),
        rest_(rest) {}

  int run() {
    {
      Progress progress("importing", 0);
      learn_limits();
      while (!failure_ && step()) progress.show(imported_.total(), input_.part());
    }
    int code = print_summary();
    lost_.report();
    if (!failure_) return code;
    std::string hint = way_on();
    if (rest_.wanted()) {
      const auto saved = save_rest();
      if (!saved) code = fail(kExitIo, saved.error().message);
      if (rest_.used())
        hint = fmt::format(" (this line and all later lines are in {})", rest_.name());
    }
    fail(failure_->code, fmt::format("line {}: {}; before it {} imported{}", failure_->line,
                                     failure_->reason, jobs_were(imported_.total()), hint));
    return code != 0 ? code : failure_->code;
  }

 private:
  // A hint at how to import the rest, or nothing if it needs no option.
  std::string way_on() const {
    const std::uint64_t done = std::max(failure_->line - 1, options_.skip);
    if (done > 0) return fmt::format(" (continue with --skip {})", done);
    if (failure_->code != kExitBadInput) return "";
    return fmt::format(" (--skip {} passes over it)", failure_->line);
  }

  // Asks for the largest body, to reject a job that is too large before it is sent.
  void learn_limits() {
    auto largest = ask_largest_job(connection_);
    if (!largest) return give_up(kExitUnavailable, input_.number() + 1, largest.error().message);
    if (const auto* const answer = std::get_if<client::Reply>(&*largest)) {
      return give_up(kExitFailure, input_.number() + 1, meaning_of(*answer));
    }
    most_body_ = std::get<std::uint64_t>(*largest);
  }

  // Reads one line. First puts the batch if it is full or the next line is not available yet.
  // Returns false at the end of the import.
  bool step() {
    const bool full = jobs_.size() >= kJobsAtOnce || bytes_ >= kBytesAtOnce;
    if (!jobs_.empty() && (full || !input_.ready())) {
      put();
      if (failure_) return false;
    }
    // Input from a pipe exists nowhere else, so it is read to its end.
    if (client::stop_requested() && !input_.is_stream()) {
      put();
      if (!failure_) give_up(kExitFailure, input_.number() + 1, "interrupted");
      return false;
    }
    const auto line = input_.next(longest_line(most_body_));
    if (!line) {
      put();
      if (!failure_) give_up(kExitIo, input_.number() + 1, line.error().message);
      return false;
    }
    if (!line.value()) {
      put();
      return false;
    }
    take(*line.value());
    return true;
  }

  // Adds the job of a line to the batch. Ignores empty lines and the lines of --skip.
  void take(const LineInput::Line& line) {
    if (input_.number() <= options_.skip) return;
    if (line.text.find_first_not_of(" \t\r") == line.text.npos) return;
    auto job = line.too_long ? Result<JobRecord>(Error{"it is too long"}) : read_record(line.text);
    if (job && job->body.size() <= most_body_) {
      if (!options_.tube.empty()) job->tube = options_.tube;
      bytes_ += job->body.size();
      jobs_.push_back(std::move(*job));
      lines_.push_back(input_.number());
      return;
    }
    put();
    unread_ = std::string(line.text) + (line.too_long ? "" : "\n");
    if (failure_) return;
    const bool too_big = line.too_long || job.ok();
    give_up(too_big ? kExitFailure : kExitBadInput, input_.number(),
            too_big ? "the job is larger than the server takes" : job.error().message);
  }

  // Puts the batch, up to the first job that is refused.
  void put() {
    if (jobs_.empty()) return;
    const auto results = putter_.put(jobs_);
    if (!results) return give_up(kExitUnavailable, lines_.front(), results.error().message);
    const auto refused = std::ranges::find(results.value(), JobId{0}, &PutResult::id);
    const auto count = static_cast<std::size_t>(refused - results.value().begin());
    for (std::size_t i = 0; i < count; ++i) {
      const JobState state = jobs_[i].state;
      const bool delayed = state != JobState::buried && jobs_[i].delay_seconds > 0;
      ++imported_[state == JobState::buried ? state
                  : delayed                 ? JobState::delayed
                                            : JobState::ready];
      lost_.count(jobs_[i], putter_);
    }
    if (refused != results.value().end()) {
      give_up(
          kExitFailure, lines_[count],
          meaning_of(refused->refusal, kNotReserved) + take_back({refused, results.value().end()}));
    }
    jobs_.erase(jobs_.begin(), jobs_.begin() + static_cast<std::ptrdiff_t>(count));
    if (!failure_) {
      lines_.clear();
      bytes_ = 0;
    }
  }

  // Deletes the jobs after the refused job, which will be imported again with it. Returns a note
  // about those that workers hold.
  std::string take_back(std::span<const PutResult> results) {
    std::vector<JobRecord> early;
    for (const PutResult& result : results) {
      if (result.id != 0) early.emplace_back().id = result.id;
    }
    const auto deleted = delete_jobs(connection_, early);
    const auto stay = deleted ? std::ranges::count(deleted.value(), false)
                              : static_cast<std::ptrdiff_t>(early.size());
    if (stay == 0) return "";
    return fmt::format(" ({} after it were put)", jobs_in_words(static_cast<std::uint64_t>(stay)));
  }

  void give_up(int code, std::uint64_t line, std::string reason) {
    failure_ = Failure{code, line, std::move(reason)};
  }

  // Writes the jobs that were not put, then the line that could not be read, then the unread input.
  Result<void> save_rest() {
    for (const JobRecord& job : jobs_) {
      TRY(rest_.write(to_line(as_json(job)) + "\n"));
    }
    TRY(rest_.write(unread_));
    return save_behind(options_, input_, rest_);
  }

  int print_summary() const {
    if (!options_.json) {
      return failure_ ? 0 : print(fmt::format("imported {}\n", imported_.words()));
    }
    Json summary{{"imported", imported_.json()}};
    if (lost_.any()) summary["lost-tags"] = lost_.json();
    if (failure_) summary["failed-line"] = failure_->line;
    return print(to_line(summary) + "\n");
  }

  const ImportOptions& options_;
  client::Connection& connection_;
  JobPutter putter_;
  LineInput input_;
  RestFile& rest_;
  std::size_t most_body_ = kMaxJobBytesCeiling;
  std::vector<JobRecord> jobs_;  // to be put
  std::vector<std::uint64_t> lines_;
  std::size_t bytes_ = 0;  // of the bodies in jobs_
  std::string unread_;     // the line that could not be read
  FreeCounts imported_;
  LostTags lost_;
  std::optional<Failure> failure_;
};

// Called when the server is not reachable. The writer of the pipe does not know that, and may have
// deleted the jobs already. Returns the exit code.
int save_all(const ImportOptions& options, LineInput& input, RestFile& rest,
             const std::string& reason) {
  const auto saved = save_behind(options, input, rest);
  if (!saved) fail(kExitIo, saved.error().message);
  fail(kExitUnavailable,
       rest.used() ? fmt::format("{} (what was to be imported is in {})", reason, rest.name())
                   : reason);
  return saved ? kExitUnavailable : kExitIo;
}

Result<int> run_import(const ImportOptions& options) {
  auto input = LineInput::open(options.file);
  if (!input) return fail(kExitIo, input.error().message);
  RestFile rest;
  if (!options.rest.empty()) {
    if (auto opened = rest.open(options.rest); !opened) {
      return fail(kExitIo, opened.error().message);
    }
  }
  client::set_flag_on_stop_signals();
  auto connection = connect(options.server);
  if (!connection) {
    if (!rest.wanted()) return connection.error();
    return save_all(options, *input, rest, connection.error().message);
  }
  return Import(options, *connection, std::move(*input), rest).run();
}

constexpr std::array kImportOptions{
    option<&ImportOptions::file>({.names = "FILE",
                                  .type = kFile,
                                  .help = "The file to read; - is standard input",
                                  .shows_default = true}),
    server_option<&ImportOptions::server>(),
    kMaxReplyOption,
    option<&ImportOptions::tube>(
        {.names = "-t,--tube", .type = kTube, .help = "Put all into this tube [their own]"}),
    option<&ImportOptions::skip>({.names = "--skip",
                                  .type = count(0),
                                  .help = "Skip this number of lines at the beginning"}),
    option<&ImportOptions::rest>({.names = "--rest",
                                  .type = kFile,
                                  .help = "Write what could not be imported to this new file"}),
    json_option<&ImportOptions::json>(),
};

}  // namespace

const Subcommand& import_command() {
  static constexpr Subcommand kCommand =
      runs<ImportOptions, run_import>({.name = "import",
                                       .group = kManyGroup,
                                       .summary = "Put the jobs that tubectl export has written",
                                       .options = kImportOptions,
                                       .footer = kImportFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
