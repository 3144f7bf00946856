// tubectl reserve: reserves jobs, prints them, and deletes, releases or buries them.
//
// Reserves one job after the other on one connection. Each is printed before it is deleted,
// released or buried, so a failed output loses no job. Without such an option the jobs stay
// reserved until the program exits and closes the connection; the server then makes them ready
// again. With --release the jobs are held until the last is printed, because the next reserve of
// the same run could otherwise return a released job.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "client/times.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

// At most one of `deletes`, `releases` and `buries` is set; the option rows exclude each other.
struct ReserveOptions {
  Server server;
  std::vector<std::string> tubes;
  std::optional<std::uint32_t> timeout;
  std::uint64_t count = 1;
  bool deletes = false;
  bool releases = false;
  bool buries = false;
  std::optional<Priority> priority;
  std::chrono::milliseconds delay{0};
  bool json = false;
  bool raw = false;

  // Only stats-job reports the job's own priority and the printed fields.
  bool wants_stats() const { return json || ((releases || buries) && !priority); }
};

struct HeldJob {
  JobId id = 0;
  std::uint64_t priority = 0;
};

// Watches exactly these tubes. Returns the exit code.
Result<int> watch_tubes(client::Connection& connection, const std::vector<std::string>& tubes) {
  for (const std::string& tube : tubes) {
    const auto watched = demand(connection, fmt::format("watch {}", tube), "WATCHING");
    if (!watched || watched.value() != 0) return watched;
  }
  if (tubes.empty() || std::ranges::find(tubes, kDefaultTube) != tubes.end()) return 0;
  return demand(connection, fmt::format("ignore {}", kDefaultTube), "WATCHING");
}

// Sends a command about a held job and checks its reply. Returns the exit code. NOT_FOUND means
// that the job's TTR has expired and the client no longer holds it.
Result<int> decide(client::Connection& connection, JobId id, const std::string& command,
                   std::string_view due) {
  const auto answer = TRY(connection.ask(command));
  if (answer.is(due)) return 0;
  if (!answer.is("NOT_FOUND")) return refused(fmt::format("job {}", id), answer);
  return fail(kExitFailure,
              fmt::format("job {}: its time to run is over, and it went back (NOT_FOUND)", id));
}

class Reservations {
 public:
  Reservations(const ReserveOptions& options, client::Connection& connection)
      : options_(options), connection_(connection) {}

  // Returns the exit code.
  Result<int> run() {
    int code = 0;
    for (std::uint64_t i = 0; i < options_.count && code == 0; ++i) {
      auto reserved = TRY(reserve());
      if (reserved.is("RESERVED") && held_.contains(reserved.number())) {
        code = fail(kExitTimedOut, fmt::format("job {}: its time to run was over before the last "
                                               "job came, and it came again",
                                               reserved.number()));
      } else if (reserved.is("RESERVED")) {
        const auto done = take(reserved);
        if (!done) return done;
        code = done.value();
      } else if (reserved.is("TIMED_OUT") || reserved.is("DEADLINE_SOON")) {
        code = fail(kExitTimedOut, meaning_of(reserved));
      } else {
        code = refused("reserve", reserved);
      }
    }
    const auto released = release_all();
    return !released || code == 0 ? released : code;
  }

 private:
  Result<client::Reply> reserve() {
    const auto timeout = options_.timeout;
    const std::string command =
        timeout ? fmt::format("reserve-with-timeout {}\r\n", *timeout) : "reserve\r\n";
    TRY(connection_.send(command));
    return connection_.receive(timeout ? std::chrono::seconds(*timeout) + client::kTimeout
                                       : Duration::max());
  }

  // Prints the job, then deletes or buries it unless printing failed.
  Result<int> take(const client::Reply& reserved) {
    HeldJob job{reserved.number(), options_.priority.value_or(0)};
    Json summary = {{"id", job.id}};
    if (options_.wants_stats()) {
      const auto stats = TRY(connection_.ask(fmt::format("stats-job {}", job.id)));
      if (!stats.is("OK")) return refused(fmt::format("job {}", job.id), stats);
      summary = job_json(client::StatsBlock(stats.body));
      if (!options_.priority) job.priority = summary["pri"].number().value_or(0);
    }
    if (const int code = show(reserved.body, std::move(summary)); code != 0) return code;
    if (options_.deletes) {
      return decide(connection_, job.id, fmt::format("delete {}", job.id), "DELETED");
    }
    if (options_.buries) {
      const auto command = fmt::format("bury {} {}", job.id, job.priority);
      return decide(connection_, job.id, command, "BURIED");
    }
    held_.insert(job.id);
    // If released now, this job would be reserved next.
    if (options_.releases) to_release_.push_back(job);
    return 0;
  }

  int show(const std::string& body, Json job) const {
    if (options_.json) {
      set_body(job, body);
      return print(to_line(job) + "\n");
    }
    return print(shown_body(body, options_.count > 1, options_.raw));
  }

  Result<int> release_all() {
    int code = 0;
    for (const HeldJob& job : to_release_) {
      const auto command = fmt::format("release {} {} {}", job.id, job.priority,
                                       client::time_argument(options_.delay));
      const auto done = decide(connection_, job.id, command, "RELEASED");
      if (!done) return done;
      code = std::max(code, done.value());
    }
    return code;
  }

  const ReserveOptions& options_;
  client::Connection& connection_;
  std::unordered_set<JobId> held_;
  std::vector<HeldJob> to_release_;
};

Result<int> run_reserve(const ReserveOptions& options) {
  if (options.priority && !options.buries && !options.releases) {
    return fail(kExitUsage, "--priority is only for --release and --bury");
  }
  auto connection = TRY(connect(options.server));
  const auto known = demand_time(connection, "reserve", options.delay);
  if (!known || *known != 0) return known;
  const auto watched = watch_tubes(connection, options.tubes);
  if (!watched || watched.value() != 0) return watched;
  return Reservations(options, connection).run();
}

constexpr std::string_view kReserveFooter =
    R"(Without --delete, --release or --bury a job goes back when tubectl ends, with the
priority that it had. A body is printed as it is; with --count each is followed
by a line end. On a terminal control characters are shown as \x1b. A job is
deleted, buried or released only after it was printed.

examples:
  tubectl reserve --timeout 5
  tubectl reserve -t mail -t images --delete
  tubectl reserve -t mail --count 100 --timeout 0 --json || test $? = 75
  tubectl reserve --timeout 0 --release --delay 600)";

constexpr std::array kReserveOptions{
    server_option<&ReserveOptions::server>(),
    kMaxReplyOption,
    tube_option_or_word<&ReserveOptions::tubes>("From this tube; may be given again [default]"),
    option<&ReserveOptions::timeout>(
        {.names = "--timeout",
         .type = seconds(),
         .help = "Wait at most this time for each job; 0 does not wait [no limit]"}),
    option<&ReserveOptions::count>({.names = "-n,--count",
                                    .type = count(1, UINT32_MAX),
                                    .help = "Number of jobs",
                                    .shows_default = true}),
    option<&ReserveOptions::deletes>({.names = "--delete", .help = "Then delete them"}),
    option<&ReserveOptions::releases>(
        {.names = "--release", .help = "At the end, release them", .excludes = {"--delete"}}),
    option<&ReserveOptions::buries>(
        {.names = "--bury", .help = "Then bury them", .excludes = {"--delete", "--release"}}),
    priority_option<&ReserveOptions::priority>(
        "With --release or --bury: a new priority [the job's own]"),
    option<&ReserveOptions::delay>({.names = "-d,--delay",
                                    .type = milliseconds(),
                                    .help = "With --release: ready after this time [at once]",
                                    .needs = "--release"}),
    json_option<&ReserveOptions::json>(),
    raw_option<&ReserveOptions::raw>(),
};

}  // namespace

const Subcommand& reserve_command() {
  static constexpr Subcommand kCommand =
      runs<ReserveOptions, run_reserve>({.name = "reserve",
                                         .group = kWorkGroup,
                                         .summary = "Take jobs, and print them",
                                         .options = kReserveOptions,
                                         .footer = kReserveFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
