#include "tubectl/snapshot.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"
#include "tubectl/list_page.h"

namespace tubed::tubectl {
namespace {

TubeCounts counts_of(const client::StatsBlock& stats) {
  return {.name = std::string(stats.text("name").value_or("")),
          .ready = stats.count("current-jobs-ready"),
          .urgent = stats.count("current-jobs-urgent"),
          .reserved = stats.count("current-jobs-reserved"),
          .delayed = stats.count("current-jobs-delayed"),
          .held = stats.count("current-jobs-held"),
          .buried = stats.count("current-jobs-buried"),
          .using_it = stats.count("current-using"),
          .watching = stats.count("current-watching"),
          .waiting = stats.count("current-waiting"),
          .pause_seconds_left = stats.count("pause-time-left"),
          .total_jobs = stats.count("total-jobs"),
          .deleted_jobs = stats.count("cmd-delete")};
}

// Converts a refusal to an Error: without statistics no caller can continue.
Error no_stats(const char* command, const client::Reply& answer) {
  return Error{fmt::format("{}: {}", command, meaning_of(answer))};
}

// The names of all tubes that the role may use: a stats-tube of another tube would be logged as
// denied. A server without stats-tubes has no roles.
Result<std::vector<std::string>> usable_tubes(client::Connection& connection) {
  std::vector<std::string> names;
  std::uint64_t from = 0;
  do {
    auto answer = TRY(connection.ask(fmt::format("stats-tubes {} 1000", from)));
    // beanstalkd takes it for a malformed stats.
    if (answer.is("UNKNOWN_COMMAND") || answer.is("BAD_FORMAT")) {
      answer = TRY(connection.ask("list-tubes"));
      if (!answer.is("OK")) return no_stats("list-tubes", answer);
      return client::list_items(answer.body);
    }
    if (!answer.is("OK")) return no_stats("stats-tubes", answer);
    const auto page = read_page(answer.body);
    if (!page) return Error{"stats-tubes: the answer has no columns"};
    for (const auto& line : page->lines) names.push_back(line.front());
    if (page->next != 0 && page->next <= from) return Error{"stats-tubes: the pages have no end"};
    from = page->next;
  } while (from != 0);
  // A tube may be on two pages if others are created or removed meanwhile.
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// A counter that has decreased started again at 0, because the tube was removed and created
// meanwhile.
double rate(std::uint64_t before, std::uint64_t after, double seconds) {
  const std::uint64_t more = after >= before ? after - before : after;
  return seconds > 0 ? static_cast<double>(more) / seconds : 0;
}

}  // namespace

const TubeCounts* Snapshot::find(std::string_view tube) const {
  const auto found = std::ranges::lower_bound(tubes, tube, {}, &TubeCounts::name);
  return found != tubes.end() && found->name == tube ? &*found : nullptr;
}

// Omits a tube that is removed between the list of tubes and its stats-tube; without `only`, also a
// tube that the client's role may not use. The time is taken at the end, because the counters of
// the last tubes are that recent.
Result<Snapshot> take_snapshot(client::Connection& connection,
                               const std::vector<std::string>& only) {
  Snapshot snapshot;
  auto stats = TRY(connection.ask("stats"));
  if (!stats.is("OK")) return no_stats("stats", stats);
  snapshot.server = client::StatsBlock(stats.body);
  std::vector<std::string> names = only;
  if (names.empty()) names = TRY(usable_tubes(connection));
  std::optional<Error> failed;
  TRY(ask_each(
      connection, names.size(),
      [&](std::size_t i, std::string& commands) {
        commands.append("stats-tube ").append(names[i]).append("\r\n");
      },
      [&](std::size_t, const client::Reply& answer) {
        if (answer.is("OK")) {
          snapshot.tubes.push_back(counts_of(client::StatsBlock(answer.body)));
        } else if (!answer.is("NOT_FOUND") && !(only.empty() && answer.is("DENIED"))) {
          failed = no_stats("stats-tube", answer);
        }
      }));
  if (failed) return *failed;
  snapshot.taken = std::chrono::steady_clock::now();
  std::ranges::sort(snapshot.tubes, {}, &TubeCounts::name);
  return snapshot;
}

int report_missing(const Snapshot& snapshot, const std::vector<std::string>& tubes, int code) {
  for (const std::string& tube : tubes) {
    if (snapshot.find(tube) == nullptr) code = fail(kExitFailure, no_such_tube(tube));
  }
  return code;
}

Rates rates_between(const TubeCounts* before, const TubeCounts& after, double seconds) {
  const TubeCounts nothing;
  const TubeCounts& from = before == nullptr ? nothing : *before;
  return {rate(from.total_jobs, after.total_jobs, seconds),
          rate(from.deleted_jobs, after.deleted_jobs, seconds)};
}

}  // namespace tubed::tubectl
