// tubectl wait-idle: waits until there is nothing more to do.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "tubectl/exit_codes.h"
#include "tubectl/snapshot.h"
#include "tubectl/subcommand.h"

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
  std::optional<double> timeout;
};

// What is waited for.
struct JobsLeft {
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
};

// An Answer: the server refused to tell.
Result<std::variant<JobsLeft, Answer>> count_left(Client& client, const IdleOptions& options) {
  using Outcome = std::variant<JobsLeft, Answer>;
  JobsLeft left;
  const auto add = [&](const Stats& stats) {
    left.reserved += stats.count("current-jobs-reserved");
    if (!options.held) left.ready += stats.count("current-jobs-ready");
    if (options.all) left.delayed += stats.count("current-jobs-delayed");
  };
  if (options.tubes.empty()) {
    auto answer = client.ask("stats");
    if (!answer) return answer.error();
    if (!answer->is("OK")) return Outcome(std::move(*answer));
    add(Stats(answer->body));
  }
  for (const std::string& tube : options.tubes) {
    auto answer = client.ask(fmt::format("stats-tube {}", tube));
    if (!answer) return answer.error();
    // A tube that is gone is idle: there is nothing to add.
    if (answer->is("NOT_FOUND")) continue;
    if (!answer->is("OK")) return Outcome(std::move(*answer));
    add(Stats(answer->body));
  }
  return Outcome(left);
}

int tell_left(const JobsLeft& left, const IdleOptions& options) {
  std::string told;
  if (!options.held) told += fmt::format("{} ready, ", left.ready);
  told += fmt::format("{} reserved", left.reserved);
  if (options.all) told += fmt::format(", {} delayed", left.delayed);
  return fail(kExitTimedOut, fmt::format("after {} s there are left: {}", *options.timeout, told));
}

Result<int> run_wait_idle(const IdleOptions& options) {
  auto client = connect(options.server);
  if (!client) return client.error();
  const auto begin = IdleClock::now();
  IdleClock::duration pause = kFirstPause;
  for (;;) {
    auto counted = count_left(*client, options);
    if (!counted) return counted.error();
    if (const auto* const answer = std::get_if<Answer>(&*counted)) {
      return refused("wait-idle", *answer);
    }
    const auto& left = std::get<JobsLeft>(*counted);
    if (left.ready + left.reserved + left.delayed == 0) return 0;
    auto next = pause;
    if (options.timeout) {
      const auto whole = std::chrono::duration<double>(*options.timeout);
      const auto end = begin + std::chrono::duration_cast<IdleClock::duration>(whole);
      const auto now = IdleClock::now();
      if (now >= end) return tell_left(left, options);
      next = std::min(next, end - now);
    }
    std::this_thread::sleep_for(next);
    pause = std::min<IdleClock::duration>(pause * 3 / 2, kLongestPause);
  }
}

}  // namespace

Subcommand add_wait_idle(CLI::App& parent) {
  const auto options = std::make_shared<IdleOptions>();
  CLI::App& app =
      *parent.add_subcommand("wait-idle", "Wait until no job is ready, and none is reserved");
  app.add_option("tubes", options->tubes, "Only in these tubes")
      ->check(is_tube())
      ->type_name("TUBE");
  add_server_option(app, options->server);
  CLI::Option* const held =
      app.add_flag("--held", options->held, "Wait only until none is reserved");
  app.add_flag("--all", options->all, "Wait until none is delayed, too")->excludes(held);
  app.add_option("--timeout", options->timeout, "Give up after so long; 0 only looks [never]")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e7));
  app.footer(R"(It looks every 0.1 to 1 s. Buried jobs are not waited for.

examples:
  tubectl wait-idle --timeout 10 || tubectl tubes --interval 0
  tubectl wait-idle faxes letters
  tubectl wait-idle --held)");
  return Subcommand{&app, [options] { return run_wait_idle(*options); }};
}

}  // namespace tubed::tubectl
