#include "tubectl/work/decision.h"

#include <algorithm>

#include <fmt/format.h>
#include <string.h>

namespace tubed::tubectl::work {
namespace {

// Doubles with each earlier release, up to the longest delay.
std::uint64_t delay_after(const Policy& policy, std::uint64_t releases) {
  std::uint64_t delay = policy.first_delay_seconds;
  // `delay` reaches the longest before it could overflow; 0 stays 0.
  for (std::uint64_t i = 0; i < releases && delay > 0 && delay < policy.longest_delay_seconds;
       ++i) {
    delay *= 2;
  }
  return std::min(delay, policy.longest_delay_seconds);
}

}  // namespace

Decision decide(const Policy& policy, const Ending& ending, std::uint64_t releases) {
  if (ending.succeeded()) return {FailureAction::delete_job};
  const bool has_code = ending.signal == 0 && !ending.overran;
  if (has_code && std::ranges::count(policy.bury_codes, ending.exit_code) > 0)
    return {FailureAction::bury};
  if (policy.on_failure != FailureAction::release) return {policy.on_failure};
  if (releases >= policy.retries) return {FailureAction::bury};
  return {FailureAction::release, delay_after(policy, releases)};
}

std::string describe(const Ending& ending) {
  if (ending.overran) return "ran too long";
  if (ending.signal == 0) return fmt::format("exit code {}", ending.exit_code);
  const char* const name = ::sigabbrev_np(ending.signal);
  return name != nullptr ? fmt::format("killed by SIG{}", name)
                         : fmt::format("killed by signal {}", ending.signal);
}

}  // namespace tubed::tubectl::work
