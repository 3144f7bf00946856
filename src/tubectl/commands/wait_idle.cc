// tubectl wait-idle: waits until no jobs are left to do.
//
// Only the server that was busy can become idle. After its end, a socket unit starts a new server
// for the next connection; so a server that this connection has started does not count as idle, and
// neither does a server that no longer drains. The end of a drained server is success. Its last
// line says that it has drained (announce_drained()), because a server that is stopped or killed
// also closes the connection.
#include "tubectl/commands/wait_idle.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <poll.h>

#include "base/planted.h"
#include "client/event_loop.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/json.h"
#include "tubectl/snapshot.h"

namespace tubed::tubectl {
namespace {

using IdleClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{1000};

struct IdleOptions {
  Server server;
  std::vector<std::string> tubes;
  bool held = false;
  bool all = false;
  bool draining = false;  // the server is in drain mode
  std::optional<double> timeout;
  bool json = false;
  std::optional<bool> announces;           // result of announce_drained(); no value: not called
  std::string_view attempt = "wait-idle";  // the subcommand, for messages
};

// The jobs that the wait counts.
struct JobsLeft {
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
};

struct ServerState {
  JobsLeft left;
  client::StatsBlock server;
};

// Returns a Reply if the server refuses.
Result<std::variant<ServerState, client::Reply>> ask_server_state(client::Connection& connection,
                                                                  const IdleOptions& options) {
  using StateOrRefusal = std::variant<ServerState, client::Reply>;
  ServerState state;
  const auto add = [&](const client::StatsBlock& stats) {
    state.left.reserved += stats.count("current-jobs-reserved");
    if (!options.held) state.left.ready += stats.count("current-jobs-ready");
    if (options.all) state.left.delayed += stats.count("current-jobs-delayed");
  };
  auto answer = TRY(connection.ask("stats"));
  if (!answer.is("OK")) return StateOrRefusal(std::move(answer));
  state.server = client::StatsBlock(answer.body);
  if (options.tubes.empty()) add(state.server);
  for (const std::string& tube : options.tubes) {
    auto counts = TRY(connection.ask(fmt::format("stats-tube {}", tube)));
    // A tube that no longer exists is idle.
    if (counts.is("NOT_FOUND")) continue;
    if (!counts.is("OK")) return StateOrRefusal(std::move(counts));
    add(client::StatsBlock(counts.body));
  }
  return StateOrRefusal(state);
}

std::string in_words(const JobsLeft& left, const IdleOptions& options) {
  std::string text;
  if (!options.held) text += fmt::format("{} ready, ", left.ready);
  text += fmt::format("{} reserved", left.reserved);
  if (options.all) text += fmt::format(", {} delayed", left.delayed);
  return text;
}

Json as_json(const JobsLeft& left, const IdleOptions& options) {
  Json state{{"idle", left.ready + left.reserved + left.delayed == 0}};
  if (!options.held) state["current-jobs-ready"] = left.ready;
  state["current-jobs-reserved"] = left.reserved;
  if (options.all) state["current-jobs-delayed"] = left.delayed;
  return state;
}

// The server has ended: nothing is left to wait for. `drained`: it said so.
int print_ended(const IdleOptions& options, bool drained) {
  if (!options.json) {
    return print(drained ? "the server has drained and ended\n" : "the server has ended\n");
  }
  return print(
      to_line({{"idle", true}, {"ended", true}, {"drained", drained ? Json(true) : Json()}}) +
      "\n");
}

// True if the server started after the connection was opened and has seen no other connection, for
// example because systemd started it for this connection. The uptime is in whole seconds, so the
// server may be up to a second older.
bool started_by(IdleClock::time_point connected, const client::StatsBlock& server) {
  const auto age = std::chrono::duration<double>(IdleClock::now() - connected).count();
  const auto uptime = server.number("uptime");
  return uptime && static_cast<double>(*uptime) <= age && server.number("total-connections") == 1;
}

// True if the server has closed the connection, and is not just silent: an error alone does not
// prove that it ended.
bool is_closed(int connection) {
  const auto closed = client::wait_for(connection, POLLRDHUP, Duration(0));
  return closed && *closed;
}

// `limit` begins when the connection is opened, or just before. `maybe_started`: the connection may
// have started the server. run() returns the exit code and may be called only once.
class IdleWait {
 public:
  IdleWait(const IdleOptions& options, const TimeLimit& limit, bool maybe_started)
      : options_(options),
        limit_(limit),
        draining_(options.draining),
        announces_(options.announces),
        maybe_started_(maybe_started) {}

  // The pause between queries grows by half each time: a short wait ends promptly, and a long wait
  // costs little.
  Result<int> run(client::Connection& connection) {
    IdleClock::duration pause = kFirstPause;
    for (;;) {
      auto seen = ask_server_state(connection, options_);
      if (!seen) return report_lost(connection, seen.error());
      if (const auto* const answer = std::get_if<client::Reply>(&*seen)) {
        if (answer->is(kDrainedLine)) return print_ended(options_, true);
        return refused(std::string(options_.attempt), *answer);
      }
      const auto& state = std::get<ServerState>(*seen);
      if (const int code = check_server(state.server); code != 0) return code;
      left_ = state.left;
      if (left_->ready + left_->reserved + left_->delayed == 0) return print_left();
      if (limit_.is_over()) return report_jobs_left("");
      if (draining_ && !announces_.has_value()) {
        auto announces = announce_drained(connection);
        if (!announces) return report_lost(connection, announces.error());
        announces_ = *announces;
      }
      // The end of a draining server also ends the pause.
      const auto ended = client::wait_for(connection.descriptor(), POLLIN, limit_.left(pause));
      if (!ended) return Error{"cannot wait for the server"};
      pause = std::min<IdleClock::duration>(pause * 3 / 2, kLongestPause);
    }
  }

  // Called when the server was draining and has ended before the first query.
  int nothing_listens() const { return print_ended(options_, false); }

 private:
  int print_left() const {
    return options_.json ? print(to_line(as_json(*left_, options_)) + "\n") : 0;
  }

  int report_jobs_left(std::string_view more) const {
    if (const int code = print_left(); code != 0) return code;
    return fail(kExitTimedOut, fmt::format("after {} s there are left: {}{}", limit_.seconds(),
                                           in_words(*left_, options_), more));
  }

  // Called when the connection is lost, or the server does not answer.
  Result<int> report_lost(const client::Connection& connection, const Error& error) const {
    if (draining_ && is_closed(connection.descriptor())) {
      if (!announces_.has_value() || TUBED_PLANTED(drain_wait_believes_any_end)) {
        return nothing_listens();
      }
      const std::string seen = left_ ? fmt::format("; when it was last seen there were left: {}",
                                                   in_words(*left_, options_))
                                     : "";
      return fail(kExitFailure, fmt::format("{}: the server has ended, {}{}", options_.attempt,
                                            *announces_ ? "and had not drained"
                                                        : "and whether it had drained is not known",
                                            seen));
    }
    if (left_ && limit_.is_over()) return report_jobs_left("; the server does not answer");
    return limit_.report(error);
  }

  // Returns 0 if this is the server that should become idle.
  int check_server(const client::StatsBlock& server) {
    const bool draining = server.text("draining") == "true";
    if (std::exchange(maybe_started_, false) && started_by(limit_.begin(), server)) {
      return fail(kExitFailure,
                  fmt::format("{}: the server has only just started, for this connection: it is "
                              "not the server that was busy",
                              options_.attempt));
    }
    if (draining_ && !draining) {
      return fail(kExitFailure,
                  fmt::format("{}: the server is not draining: it was started again, or takes jobs "
                              "again",
                              options_.attempt));
    }
    draining_ = draining;
    return 0;
  }

  const IdleOptions& options_;
  const TimeLimit& limit_;
  bool draining_;  // state at the last query
  std::optional<bool> announces_;
  bool maybe_started_;
  std::optional<JobsLeft> left_;  // at the last query
};

Result<int> run_wait_idle(const IdleOptions& options) {
  const TimeLimit limit(options.timeout);
  auto connection = limit.connect(options.server);
  if (connection) return IdleWait(options, limit, true).run(*connection);
  if (options.draining && client::nothing_listens(connection.error())) {
    return IdleWait(options, limit, true).nothing_listens();
  }
  return limit.report(connection.error());
}

}  // namespace

Result<bool> announce_drained(client::Connection& connection) {
  const auto known = TRY(Capabilities::of(connection));
  if (!known.has("set-caps:256")) return false;
  const auto reply = TRY(connection.ask_for_caps(256));
  return reply.is("OK");
}

Result<int> wait_until_drained(client::Connection& connection, const TimeLimit& limit,
                               bool announces, bool json) {
  IdleOptions options;
  options.held = true;
  options.draining = true;
  options.announces = announces;
  options.attempt = "drain";
  options.json = json;
  return IdleWait(options, limit, false).run(connection);
}

namespace {

constexpr std::array kIdleOptions{
    tube_option_or_word<&IdleOptions::tubes>("Only in these tubes"),
    server_option<&IdleOptions::server>(),
    kMaxReplyOption,
    option<&IdleOptions::held>({.names = "--held", .help = "Wait only until no job is reserved"}),
    option<&IdleOptions::all>(
        {.names = "--all", .help = "Wait until none is delayed, too", .excludes = {"--held"}}),
    option<&IdleOptions::draining>(
        {.names = "--draining",
         .help =
             "The server was drained before: a server that does not drain is another server; if "
             "none listens, it has ended"}),
    option<&IdleOptions::timeout>({.names = "--timeout",
                                   .type = time(0, 1e7),
                                   .help = "Give up after this time; 0 checks once [never]"}),
    json_option<&IdleOptions::json>("Print whether it is idle, and what is left"),
};

constexpr std::string_view kIdleFooter =
    R"(It looks every 0.1 to 1 s. Buried jobs are not waited for. A server that has
drained and ended is idle; one that was stopped or that this connection has
started is not.

examples:
  tubectl wait-idle --timeout 10 || tubectl tubes --interval 0
  tubectl wait-idle faxes letters
  tubectl drain && tubectl wait-idle --held --draining)";

}  // namespace

const Subcommand& wait_idle_command() {
  static constexpr Subcommand kCommand = runs<IdleOptions, run_wait_idle>(
      {.name = "wait-idle",
       .group = kControlGroup,
       .summary = "Wait until no job is ready, and none is reserved",
       .options = kIdleOptions,
       .footer = kIdleFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
