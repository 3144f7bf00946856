#include "tubectl/snapshot.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

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

// Omits a tube that is removed between list-tubes and its stats-tube; without `only`, also a tube
// that the client's role may not use. The time is taken at the end, because the counters of the
// last tubes are that recent.
Result<Snapshot> take_snapshot(client::Connection& connection,
                               const std::vector<std::string>& only) {
  Snapshot snapshot;
  auto stats = TRY(connection.ask("stats"));
  if (!stats.is("OK")) return no_stats("stats", stats);
  snapshot.server = client::StatsBlock(stats.body);
  std::vector<std::string> names = only;
  if (names.empty()) {
    auto list = TRY(connection.ask("list-tubes"));
    if (!list.is("OK")) return no_stats("list-tubes", list);
    names = client::list_items(list.body);
  }
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
