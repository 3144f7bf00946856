// tubectl drain, undrain: use tubed's commands. The protocol of beanstalkd has no such command, so
// a beanstalkd on this machine gets a signal, as does a tubed that does not let the client use the
// command.
//
// A signal is sent only to a process that is certainly the server: stats has its pid and host, the
// connection is local, and its name is the server's. SIGUSR2 would kill beanstalkd and is sent to
// tubed only.
//
// The order of work:
// 1. Ask the server for its stats. If it is already in the wanted state, report that and end.
// 2. Open a pidfd of the process: a signal then cannot reach another process that reuses the pid.
//    Look for reasons against a signal (doubt()).
// 3. Send the command if the server knows it. Otherwise send the signal, and poll stats until the
//    state has changed or the process has ended.
// 4. If neither is possible, print the command to run on the server's machine.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "client/stats_block.h"
#include "os/descriptor.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/commands/wait_idle.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

constexpr std::chrono::seconds kDrainPatience{10};
constexpr std::chrono::milliseconds kDrainPause{10};

using DrainClock = TimeLimit::Clock;

struct DrainOptions {
  Server server;
  bool drains = true;
  bool wait = false;
  std::optional<double> timeout;
  bool json = false;

  int signal() const { return drains ? SIGUSR1 : SIGUSR2; }
  const char* command() const { return drains ? "drain" : "undrain"; }
  const char* reply() const { return drains ? "DRAINING" : "NOT_DRAINING"; }
  const char* signal_name() const { return drains ? "USR1" : "USR2"; }
  const char* state() const { return drains ? "true" : "false"; }
};

// Only tubed reports this line.
bool is_tubed(const client::StatsBlock& stats) {
  return stats.number("max-job-memory").has_value();
}

// The name of the server's process in /proc, and of its unit.
const char* program_of(const client::StatsBlock& stats) {
  return is_tubed(stats) ? "tubed" : "beanstalkd";
}

// The address of one end of a socket; all of 127.0.0.0/8 counts as one address.
std::string host_of(const sockaddr_storage& end) {
  if (end.ss_family == AF_INET) {
    in_addr host{};
    std::memcpy(&host, &reinterpret_cast<const sockaddr_in&>(end).sin_addr, sizeof(host));
    if ((ntohl(host.s_addr) >> 24) == IN_LOOPBACKNET) host.s_addr = htonl(INADDR_LOOPBACK);
    return std::string(reinterpret_cast<const char*>(&host), sizeof(host));
  }
  if (end.ss_family == AF_INET6) {
    const in6_addr& host = reinterpret_cast<const sockaddr_in6&>(end).sin6_addr;
    return std::string(reinterpret_cast<const char*>(&host), sizeof(host));
  }
  return {};  // a unix socket
}

// True if both ends have the same address, as in a connection within one machine.
bool is_local(int connection) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_bytes = sizeof(here);
  socklen_t there_bytes = sizeof(there);
  return ::getsockname(connection, reinterpret_cast<sockaddr*>(&here), &here_bytes) == 0 &&
         ::getpeername(connection, reinterpret_cast<sockaddr*>(&there), &there_bytes) == 0 &&
         host_of(here) == host_of(there);
}

std::string our_hostname() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// The name of the process; empty if no such process is visible.
std::string name_of_process(std::uint64_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name;
}

// The reason why the server's process must not be signalled; empty if it may be.
std::string doubt(const client::StatsBlock& stats, int connection) {
  const auto hostname = stats.text("hostname");
  const std::uint64_t process = stats.count("pid");
  if (!hostname || process == 0 || !stats.text("draining")) {
    return "the server does not report its hostname, its pid and whether it drains";
  }
  if (*hostname != our_hostname() || !is_local(connection)) {
    return fmt::format("the server is on {}, or in a container, and not here", *hostname);
  }
  const std::string name = name_of_process(process);
  if (name == program_of(stats)) return {};
  return fmt::format("process {} is no {} here", process, program_of(stats));
}

// Advice for a server that this client cannot signal.
std::string advice(const client::StatsBlock& stats, const DrainOptions& options) {
  return fmt::format(
      "where it runs, try systemctl kill --kill-whom=main -s SIG{} {}, or kill -{} PID",
      options.signal_name(), program_of(stats), options.signal_name());
}

// Returns true if the process of the pidfd ends before `end`.
bool ends_before(int process, DrainClock::time_point end) {
  const auto left = std::max<DrainClock::duration>(end - DrainClock::now(), {});
  const auto ended = client::wait_for(process, POLLIN, left);
  return ended && *ended;
}

// True if systemd passed sockets to the process. Its environment is readable only by its user and
// root.
bool has_sockets_of_systemd(std::uint64_t process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process));
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable.starts_with("LISTEN_FDS=")) return true;
  }
  return false;
}

std::string jobs_left(const client::StatsBlock& stats) {
  return fmt::format("jobs left: {} ready, {} reserved, {} delayed, {} buried",
                     stats.count("current-jobs-ready"), stats.count("current-jobs-reserved"),
                     stats.count("current-jobs-delayed"), stats.count("current-jobs-buried"));
}

// A connection to the server, and how the server announces its end.
struct DrainedServer {
  client::Connection& connection;
  const TimeLimit& limit;
  bool announces = false;  // announce_drained()
};

// Called when the server has closed the connection and ended, or when its last line was
// kDrainedLine.
int report_end(const DrainedServer& server, const DrainOptions& options, bool drained) {
  if (options.json && (drained || !server.announces)) {
    return print(to_line({{"ended", true}, {"drained", drained ? Json(true) : Json()}}) + "\n");
  }
  if (drained) return print("drained: the server has ended\n");
  if (server.announces) {
    return fail(kExitFailure, "drain: the server has ended, and had not drained");
  }
  return print("the server has ended; whether it had drained is not known\n");
}

// Called when the server is in the wanted state: prints that, waits with --wait, and returns the
// exit code. `already`: the server was in that state before.
Result<int> report(const DrainedServer& server, const DrainOptions& options,
                   const client::StatsBlock& stats, bool already) {
  if (options.json) {
    Json state{{"draining", options.drains}, {"already", already}};
    for (const std::string_view key : {"current-jobs-ready", "current-jobs-reserved",
                                       "current-jobs-delayed", "current-jobs-buried"}) {
      state[key] = stats.count(key);
    }
    const int code = print(to_line(state) + "\n");
    if (!options.wait || code != 0) return code;
    return wait_until_drained(server.connection, server.limit, server.announces, true);
  }
  if (!options.drains) {
    return print(already ? "not draining: the server takes jobs as before\n"
                         : "no longer draining: the server takes jobs again\n");
  }
  const int code = print(fmt::format("draining{}: the server takes no new jobs; {}\n",
                                     already ? " already" : "", jobs_left(stats)));
  if (!options.wait || code != 0) return code;
  return wait_until_drained(server.connection, server.limit, server.announces, false);
}

// True if the connection is still open, and the server is only silent.
bool is_open(const client::Connection& connection) {
  const auto ready = client::wait_for(connection.descriptor(), POLLIN, {});
  return ready && !*ready;
}

// Called when the server has not answered `stats`. With drain.exit a server closes the connection,
// and its process ends a little later, before `end`. `process` is -1 if the process is not on this
// machine.
Result<int> report_without_answer(const DrainedServer& server, const DrainOptions& options,
                                  const Error& error, int process, DrainClock::time_point end) {
  if (!options.drains) return error;
  if (process >= 0) {
    if (ends_before(process, end)) return report_end(server, options, false);
    return Error{fmt::format("{}, and its process has not ended", error.message)};
  }
  if (is_open(server.connection)) return error;
  return report_end(server, options, false);
}

// Polls until the server reports that it drains, or no longer drains. With drain.exit, tubed may
// end at any moment after the signal.
Result<int> wait_for_state(const DrainedServer& server, const DrainOptions& options, int process) {
  const auto end = DrainClock::now() + kDrainPatience;
  for (;;) {
    const auto answer = server.connection.ask("stats");
    if (!answer) return report_without_answer(server, options, answer.error(), process, end);
    if (answer->is(kDrainedLine)) return report_end(server, options, true);
    const client::StatsBlock stats(answer.value().body);
    if (stats.text("draining") == options.state()) return report(server, options, stats, false);
    if (DrainClock::now() >= end) {
      return fail(kExitTimedOut,
                  fmt::format("after {} s the server still says draining: {}",
                              kDrainPatience.count(), options.drains ? "false" : "true"));
    }
    std::this_thread::sleep_for(kDrainPause);
  }
}

// True if the server has the commands drain and undrain; false also if it closes the connection.
bool knows_command(client::Connection& connection, const DrainOptions& options) {
  const auto known = Capabilities::of(connection);
  return known && known->has(options.command());
}

// Called after the server has replied to the command. With drain.exit it may end at any moment.
Result<int> report_after_command(const DrainedServer& server, const DrainOptions& options,
                                 int process) {
  const auto end = DrainClock::now() + kDrainPatience;
  const auto answer = server.connection.ask("stats");
  if (!answer) return report_without_answer(server, options, answer.error(), process, end);
  if (answer->is(kDrainedLine)) return report_end(server, options, true);
  return report(server, options, client::StatsBlock(answer.value().body), false);
}

// Returns the exit code if the signal cannot be sent.
std::optional<int> send_signal(const DrainOptions& options, const os::Descriptor& process,
                               std::uint64_t number) {
  if (::syscall(SYS_pidfd_send_signal, process.number(), options.signal(), nullptr, 0) == 0)
    return std::nullopt;
  const bool not_allowed = errno == EPERM;
  return fail(not_allowed ? kExitNotAllowed : kExitFailure,
              fmt::format("cannot signal process {}: {}{}", number, os::error_text(errno),
                          not_allowed ? "; run this as root or as the server's user" : ""));
}

// Sends the command, or a signal if the server does not know the command or denies it.
Result<int> change_state(const DrainedServer& server, const DrainOptions& options,
                         const client::StatsBlock& stats) {
  // The pidfd keeps the signal from a process that reuses the pid.
  const std::uint64_t number = stats.count("pid");
  const os::Descriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(number), 0)));
  std::string why = doubt(stats, server.connection.descriptor());
  if (why.empty() && !process) why = fmt::format("there is no process {} here", number);
  const bool may_start_again = options.drains && why.empty() && has_sockets_of_systemd(number);
  const auto warned = [may_start_again](Result<int> code) {
    if (may_start_again && code && code.value() == 0) {
      fail(0,
           "systemd holds the server's sockets: unless its unit closes them when it has drained "
           "and ended, the next connection starts it again, and it takes jobs");
    }
    return code;
  };
  if (is_tubed(stats) && knows_command(server.connection, options)) {
    const auto reply = TRY(server.connection.ask(options.command()));
    if (reply.is(options.reply())) {
      return warned(report_after_command(server, options, why.empty() ? process.number() : -1));
    }
    if (!why.empty() || !is_access_refusal(reply.line)) return refused(options.command(), reply);
  }
  if (!why.empty()) return fail(kExitFailure, fmt::format("{}: {}", why, advice(stats, options)));
  if (const auto code = send_signal(options, process, number)) return *code;
  return warned(wait_for_state(server, options, process.number()));
}

Result<int> set_state(DrainedServer server, const DrainOptions& options) {
  const auto answer = TRY(server.connection.ask("stats"));
  if (is_access_refusal(answer.line)) return refused("stats", answer);
  const client::StatsBlock stats(answer.body);
  if (options.drains && is_tubed(stats)) {
    const auto announces = announce_drained(server.connection);
    server.announces = announces && *announces;
  }
  if (stats.text("draining") == options.state()) return report(server, options, stats, true);
  if (!options.drains && !is_tubed(stats)) {
    return fail(kExitFailure, "this server drains until it is restarted: only tubed can end it");
  }
  return change_state(server, options, stats);
}

Result<int> run_drain(const DrainOptions& options) {
  const TimeLimit limit(options.timeout);
  auto connection = limit.connect(options.server);
  if (!connection) return limit.report(connection.error());
  auto code = set_state({.connection = *connection, .limit = limit}, options);
  return code ? code : limit.report(code.error());
}

Result<int> run_undrain(DrainOptions& options) {
  options.drains = false;
  return run_drain(options);
}

constexpr std::array kUndrainOptions{server_option<&DrainOptions::server>(), kMaxReplyOption,
                                     json_option<&DrainOptions::json>()};
constexpr std::array kDrainOptions{
    server_option<&DrainOptions::server>(),
    kMaxReplyOption,
    option<&DrainOptions::wait>(
        {.names = "--wait", .help = "Then wait until no job is reserved, or the server has ended"}),
    option<&DrainOptions::timeout>({.names = "--timeout",
                                    .type = time(0, 1e7),
                                    .help = "Wait no longer than this time [no limit]",
                                    .needs = "--wait"}),
    json_option<&DrainOptions::json>(),
};

}  // namespace

const Subcommand& drain_command() {
  static constexpr Subcommand kCommand = runs<DrainOptions, run_drain>(
      {.name = "drain",
       .group = kControlGroup,
       .summary = "Have a server take no more jobs",
       .options = kDrainOptions,
       .footer = R"(It sends the command drain, or SIGUSR1 to a server of this machine that does not
know the command or does not let this client use it, waits until the server says
that it drains, and prints which jobs are left. With drain.exit the server may end
at once, which it prints, too.

examples:
  tubectl drain
  sudo tubectl drain -s unix:/run/tubed/tubed.sock
  tubectl drain --wait --timeout 60)"});
  return kCommand;
}

const Subcommand& undrain_command() {
  static constexpr Subcommand kCommand = runs<DrainOptions, run_undrain>(
      {.name = "undrain",
       .group = kControlGroup,
       .summary = "Have a tubed take jobs again",
       .options = kUndrainOptions,
       .footer =
           R"(It sends the command undrain, or SIGUSR2 to a tubed of this machine that does not
let this client use the command, and waits until the server says that it does not
drain. beanstalkd drains until it is restarted.

examples:
  tubectl undrain
  sudo tubectl undrain -s unix:/run/tubed/tubed.sock)"});
  return kCommand;
}

}  // namespace tubed::tubectl
