#include "tests/simulation/journal_costs.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "journal/journal.h"

namespace tubed::simulation {

std::string JournalCosts::excess_of_replay(std::uint64_t facts, std::uint64_t steps) {
  const auto log = static_cast<std::uint64_t>(std::bit_width(facts));
  if (steps <= 2 * facts * log + 1000) return {};
  return fmt::format("a replay of {} facts took {} steps", facts, steps);
}

std::string JournalCosts::excess(const FactLog& log, std::uint64_t removals) {
  const LogStats stats = log.stats();
  largest_segment_bytes_ = std::max(largest_segment_bytes_, stats.segment_bytes);
  const std::uint64_t promised = 2 * stats.live_bytes + 3 * largest_segment_bytes_;
  if (stats.file_bytes <= std::max(promised, least_bytes_)) {
    least_bytes_ = stats.file_bytes;
    live_bytes_ = stats.live_bytes;
  }
  live_bytes_ = std::min(live_bytes_, stats.live_bytes);
  const std::uint64_t growth = stats.live_bytes - live_bytes_;
  if (stats.file_bytes > least_bytes_ + 2 * largest_segment_bytes_ + 2 * growth)
    return fmt::format("the files have grown from {} to {} bytes, {} are live", least_bytes_,
                       stats.file_bytes, stats.live_bytes);
  // Commands wait for a bounded number of slices of compaction and removals (Space).
  constexpr std::uint64_t kMostRemovals = 12;
  // Commands that lack room wait until the files have grown.
  const auto* const journal = dynamic_cast<const journal::Journal*>(&log);
  const bool lacks_room = stats.full || journal == nullptr || journal->overloaded();
  const bool wait = log.congested() && !lacks_room && stats.records_written == written_;
  written_ = stats.records_written;
  if (!wait) removals_ = removals;
  if (removals - removals_ <= kMostRemovals) return {};
  return fmt::format("commands have waited for {} removals of files", removals - removals_);
}

}  // namespace tubed::simulation
