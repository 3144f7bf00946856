#include "config/settings.h"

#include <algorithm>

#include "config/table.h"

namespace tubed {

Settings::Settings() : listeners(1) {
  for (const auto& row : config::settings_table()) row.set(*this, row.default_value());
}

bool operator==(const Settings& one, const Settings& other) {
  const auto same = [&](const config::Setting& row) { return row.get(one) == row.get(other); };
  return std::ranges::all_of(config::settings_table(), same) && one.listeners == other.listeners &&
         one.policies == other.policies && one.roles == other.roles;
}

std::uint64_t segment_bytes_in_force(const Settings& settings) {
  constexpr std::uint64_t kJobs = 8;
  constexpr std::uint64_t kRecordBytes = 512;  // upper bound for a job without its body
  return std::max(settings.journal_segment_bytes,
                  kJobs * (settings.queue.job_bytes + kRecordBytes));
}

}  // namespace tubed
