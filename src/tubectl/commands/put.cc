// tubectl put: puts one job, or one job per line.
//
// One job (put_one, put_whole): the body is the argument, or the whole input. The input is read
// before the connection for the put is opened, because reading from a pipe may exceed the server's
// idle timeout.
//
// With --lines (PutLines) the input may be endless, so the lines pass through a pipeline of bounded
// memory:
// 1. add_line() appends a put for each line that can be read without waiting, up to 256 commands or
//    256 KiB.
// 2. The batch is sent, and replies are read until at most 256 commands are unanswered.
// 3. If the next line is not available yet, all replies are read first: an interactive producer
//    sees each result before it types the next line.
// 4. The first refused line ends the input. Lines already sent after it cannot be undone; the
//    report counts them separately.
// 5. SIGINT and SIGTERM end the input as well. The replies to the lines that were sent are awaited,
//    and the report names the line to continue with.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/event_loop.h"
#include "client/pipeline.h"
#include "client/times.h"
#include "text/ascii.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/files.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/jobs/put_tags.h"
#include "tubectl/jobs/record.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

struct PutOptions {
  Server server;
  std::optional<std::string> body;
  std::string file = "-";
  std::string tube = std::string(kDefaultTube);
  std::optional<Priority> priority;
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds ttr = std::chrono::seconds(kUsualTtrSeconds);
  PutTags tags;
  bool lines = false;
  bool ids = false;
  bool json = false;

  client::NewJob job(std::string_view of_body) const {
    return {.priority = priority.value_or(kUsualPriority),
            .delay = delay,
            .ttr = ttr,
            .tags = tags_text,
            .body = of_body};
  }

  std::string tags_text;  // `tags`, as they are written in a put
};

std::string too_large(std::uint64_t largest) {
  return fmt::format("the job is larger than the {} bytes that the server takes", largest);
}

// Returns 0 if the server knows everything that the job needs. A server that does not know tags or
// milliseconds would run the body as commands.
Result<int> check_needs(const PutOptions& options, client::Connection& connection) {
  const bool milliseconds =
      client::has_milliseconds(options.delay) || client::has_milliseconds(options.ttr);
  if (options.tags_text.empty() && !milliseconds) return 0;
  const auto server = TRY(Capabilities::of(connection));
  std::string unknown = unknown_options(options.tags, server);
  if (milliseconds && !server.has(kMillisecondsCapability)) {
    unknown.append(unknown.empty() ? "" : ", ").append(kMillisecondsForm);
  }
  if (unknown.empty()) return 0;
  return fail(kExitFailure, fmt::format("put: the server does not know {}", unknown));
}

// Uses the tube, then calls put(client). Returns the exit code.
template <class Put>
Result<int> put_into_tube(const PutOptions& options, Put put) {
  auto connection = TRY(connect(options.server));
  if (const auto checked = check_needs(options, connection); !checked || *checked != 0) {
    return checked;
  }
  if (options.tube != kDefaultTube) {
    const auto used = demand(connection, fmt::format("use {}", options.tube), "USING");
    if (!used || used.value() != 0) return used;
  }
  return put(connection);
}

// Puts the lines of an input, pipelined. run() returns the exit code. Line numbers count from 1;
// since each line is a job, they also number the puts.
class PutLines {
 public:
  PutLines(const PutOptions& options, client::Connection& connection, std::uint64_t largest)
      : options_(options), connection_(connection), largest_(largest), progress_("putting", 0) {}

  // Runs until the end of the input, or until a line is refused. Returns the exit code.
  Result<int> run(LineInput& input) {
    client::set_flag_on_stop_signals();
    input.end_on_stop();
    const auto code = put_all(input);
    if (code) return code;
    std::string message =
        fmt::format("{}; {} inserted before", code.error().message, jobs_were(inserted_));
    if (why_.empty()) {
      message += fmt::format("; {}", way_on());
      if (sent_ > answered_) message += fmt::format(", unless {} were", lines_in_flight());
    }
    return Error{message};
  }

 private:
  Result<int> put_all(LineInput& input) {
    std::string commands;
    std::size_t gathered = 0;
    bool more = true;
    while (more && why_.empty() && unprinted_ == 0) {
      more = add_line(input, commands);
      ++gathered;
      const bool at_once = more && input.ready();
      const bool full =
          gathered == client::kCommandsInFlight || commands.size() >= client::kBytesInFlight;
      if (at_once && !full) continue;
      TRY(connection_.send(commands));
      commands.clear();
      gathered = 0;
      // While lines are available, the server is kept busy; otherwise no command is left
      // unanswered.
      TRY(take_answers(at_once ? client::kCommandsInFlight : 0));
    }
    // Lines in flight after a refused line count as well.
    TRY(take_answers(0));
    if (unprinted_ != 0) return unprinted_;
    if (!why_.empty()) return report_refused();
    const int code = print_inserted();
    if (code != 0 || !client::stop_requested()) return code;
    return fail(kExitFailure,
                fmt::format("interrupted: {} inserted; {}", jobs_were(inserted_), way_on()));
  }

  // Precondition: no line was refused.
  std::string way_on() const { return fmt::format("continue with tail -n +{}", answered_ + 1); }

  std::string lines_in_flight() const {
    return sent_ == answered_ + 1 ? fmt::format("line {}", sent_)
                                  : fmt::format("lines {} to {}", answered_ + 1, sent_);
  }

  // Returns false if the input has ended or the line cannot be put.
  bool add_line(LineInput& input, std::string& commands) {
    const auto line = input.next(largest_);
    if (!line) {
      why_ = line.error().message;
      refused_ = sent_ + 1;
      code_ = kExitIo;
      return false;
    }
    if (!line.value()) return false;
    if (line.value()->too_long) {
      refuse_line(input.number(), too_large(largest_));
      return false;
    }
    client::append_put(options_.job(line.value()->text), commands);
    part_ = input.part();
    ++sent_;
    return true;
  }

  Result<void> take_answers(std::uint64_t keep) {
    while (sent_ - answered_ > keep) {
      const auto answer = TRY(connection_.receive());
      ++answered_;
      if (answer.is("INSERTED")) {
        ++inserted_;
        if (!why_.empty() && answered_ > refused_) ++behind_;
        if (options_.ids && unprinted_ == 0) unprinted_ = print_id(answer.number());
      } else {
        refuse_line(answered_, meaning_of(answer));
      }
      progress_.show(inserted_, part_);
    }
    return {};
  }

  // Records the first refused line; nothing is sent after it. Replies arrive in the order of the
  // lines, so only a line that is too long, which is found before it is sent, can be recorded
  // before an earlier refusal arrives. The earlier line then replaces it.
  void refuse_line(std::uint64_t line, std::string reason) {
    if (!why_.empty() && line > refused_) return;
    if (!why_.empty()) behind_ = 0;
    refused_ = line;
    code_ = kExitFailure;
    why_ = fmt::format("line {}: {}", line, std::move(reason));
  }

  int print_id(std::uint64_t id) const {
    return print(options_.json ? to_line({{"id", id}}) + "\n" : fmt::format("{}\n", id));
  }

  int print_inserted() const {
    if (options_.ids) return 0;
    const Json summary = {{"inserted", inserted_}};
    return print(options_.json ? to_line(summary) + "\n" : fmt::format("{}\n", inserted_));
  }

  int report_refused() const {
    std::string message =
        fmt::format("{}; {} inserted before", why_, jobs_were(inserted_ - behind_));
    if (behind_ > 0) message += fmt::format(", and {} after it, which were on their way", behind_);
    return fail(code_, message);
  }

  const PutOptions& options_;
  client::Connection& connection_;
  const std::uint64_t largest_;
  Progress progress_;
  std::optional<double> part_;  // of the input
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t inserted_ = 0;
  std::uint64_t behind_ = 0;   // inserted after the refused line
  std::uint64_t refused_ = 0;  // number of the first refused line
  std::string why_;            // reason and line at which the input ended; empty: none
  int code_ = kExitFailure;
  int unprinted_ = 0;  // exit code once standard output has failed
};

Result<int> put_lines(const PutOptions& options) {
  auto input = LineInput::open(options.file);
  if (!input) return fail(kExitIo, input.error().message);
  return put_into_tube(options, [&](client::Connection& connection) -> Result<int> {
    auto largest = TRY(ask_largest_job(connection));
    if (const auto* const answer = std::get_if<client::Reply>(&largest))
      return refused("put", *answer);
    return PutLines(options, connection, std::get<std::uint64_t>(largest)).run(*input);
  });
}

// The state of the job that has the key, if the key is taken and no job was added.
std::string existing_state(const client::Reply& answer) {
  std::string_view rest = answer.line;
  for (int word = 0; word < 2; ++word) {
    rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
  }
  if (std::ranges::count(answer.line, ' ') < 2) return "";
  return ascii_lower(rest.substr(0, rest.find(' ')));
}

// Prints the id of the new job, or of the job that has its key.
Result<int> put_one(const PutOptions& options, std::string_view body) {
  return put_into_tube(options, [&](client::Connection& connection) -> Result<int> {
    std::string command;
    client::append_put(options.job(body), command);
    TRY(connection.send(command));
    const auto answer = TRY(connection.receive());
    if (!answer.is("INSERTED")) return refused("put", answer);
    const std::uint64_t id = answer.number();
    const std::string state = existing_state(answer);
    if (!options.json && !state.empty()) {
      fail(0, fmt::format("job {} has the key, and is {}: no job was added", id, state));
    }
    Json object{{"id", id}};
    if (!state.empty()) object["exists"] = state;
    return print(options.json ? to_line(object) + "\n" : fmt::format("{}\n", id));
  });
}

Result<int> put_whole(const PutOptions& options) {
  auto input = LineInput::open(options.file);
  if (!input) return fail(kExitIo, input.error().message);
  std::uint64_t largest = 0;
  {
    // A connection of its own, because reading the input may take long.
    auto connection = TRY(connect(options.server));
    auto answer = TRY(ask_largest_job(connection));
    if (const auto* const refusal = std::get_if<client::Reply>(&answer)) {
      return refused("put", *refusal);
    }
    largest = std::get<std::uint64_t>(answer);
  }
  std::string body;
  bool too_big = false;
  const auto read = input->rest([&](std::string_view piece) -> Result<void> {
    too_big = body.size() + piece.size() > largest;
    if (too_big) return Error{too_large(largest)};
    body += piece;
    return {};
  });
  if (!read) return fail(too_big ? kExitFailure : kExitIo, "put: " + read.error().message);
  if (body.empty()) {
    const std::string from = options.file == "-" ? "standard input" : options.file;
    fail(0, fmt::format("{} is empty: the job has no body", from));
  }
  return put_one(options, body);
}

Result<int> run_put(const PutOptions& given) {
  PutOptions options = given;
  if (options.ids && !options.lines) return fail(kExitUsage, "--ids is only for --lines");
  auto tags = text_of(options.tags);
  if (!tags) return fail(kExitUsage, tags.error().message);
  options.tags_text = std::move(*tags);
  if (options.lines) return put_lines(options);
  return options.body && *options.body != "-" ? put_one(options, *options.body)
                                              : put_whole(options);
}

constexpr const char* kPutFooter =
    R"(Prints the job's id; with --lines how many jobs were put, or with --ids the id
of each. A line that is empty is a job, too. Lines are put as they come; the first
that the server refuses ends it, and so does Ctrl-C, which prints the line to go
on with. A delay or TTR such as 500ms needs a server that
takes milliseconds: beanstalkd does not.

examples:
  tubectl put hello
  tubectl put --tube mail --delay 60 --ttr 5m hello
  tubectl put --delay 500ms hello
  date | tubectl put --tube mail
  tubectl put --tube report --unique daily:3600 'the report of the day'
  tubectl put --tube mail --max 5:mail-dead --ttl 1d hello
  tubectl put --tube mail --lines --file jobs.txt)";

constexpr std::array kPutOptions{
    option<&PutOptions::body>({.names = "BODY",
                               .type = text("BODY"),
                               .help = "The job; without it, or -, all of standard input"}),
    server_option<&PutOptions::server>(),
    kMaxReplyOption,
    option<&PutOptions::tube>(
        {.names = "-t,--tube", .type = kTube, .help = "Into this tube", .shows_default = true}),
    priority_option<&PutOptions::priority>("Smaller is more urgent [1024]"),
    option<&PutOptions::delay>({.names = "-d,--delay",
                                .type = milliseconds(),
                                .help = "Ready after this time",
                                .shows_default = true}),
    option<&PutOptions::ttr>({.names = "--ttr",
                              .type = milliseconds(),
                              .help = "How long a client may hold it",
                              .shows_default = true}),
    option<&PutOptions::tags, &PutTags::unique>(
        {.names = "-u,--unique",
         .type = text("KEY[:SECONDS]"),
         .help = "Only if no job of the tube has this key, or had it until that many seconds ago",
         .excludes = {"--lines"}}),
    option<&PutOptions::tags, &PutTags::max>(
        {.names = "--max",
         .type = text("N[:DEAD]"),
         .help = "How often it may be reserved; then it goes where DEAD says: bury, delete or a "
                 "tube [where the tube's policy says]"}),
    option<&PutOptions::tags, &PutTags::ttl>(
        {.names = "--ttl",
         .type = seconds(),
         .help = "It expires this time after its put, unless it is reserved or buried"}),
    option<&PutOptions::tags, &PutTags::group>(
        {.names = "--group", .type = text("NAME"), .help = "It is a member of this group"}),
    option<&PutOptions::tags, &PutTags::after>(
        {.names = "--after",
         .type = text("NAME"),
         .help = "Not ready before all members of this group are deleted"}),
    option<&PutOptions::tags, &PutTags::concurrency>(
        {.names = "--concurrency",
         .type = text("KEY[:N]"),
         .help = "At most N jobs (1) with this key are reserved at once"}),
    option<&PutOptions::file>({.names = "-f,--file",
                               .type = kFile,
                               .help = "The job is this file; with --lines, its lines are",
                               .excludes = {"BODY"}}),
    option<&PutOptions::lines>({.names = "-l,--lines",
                                .help = "Each line is a job, without its line end",
                                .excludes = {"BODY"}}),
    option<&PutOptions::ids>({.names = "--ids", .help = "With --lines: print the id of each job"}),
    json_option<&PutOptions::json>(),
};
static_assert(kUsualPriority == 1024);  // as the help says

}  // namespace

const Subcommand& put_command() {
  static constexpr Subcommand kCommand =
      runs<PutOptions, run_put>({.name = "put",
                                 .group = kWorkGroup,
                                 .summary = "Put a job, or a job for each line",
                                 .options = kPutOptions,
                                 .footer = kPutFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
