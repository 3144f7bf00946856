#include "tests/simulation/costs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "commands/conversation.h"

namespace tubed::simulation {

namespace {

// One reply may exceed the bound, and so may a batch of jobs, which has a bound of the same size.
constexpr std::size_t kLongestReply = 32 << 10;
// A conversation keeps the input of one read, in a buffer that may be twice as long.
constexpr std::size_t kInput = 2 * (64 << 10) + 4096;
// The most jobs, tubes and sessions that the engine visits in an iteration of the loop. In it, each
// client may list jobs with a filter, which may visit limits.work_per_turn jobs, 1,000, and counts
// each of them several times.
constexpr std::uint64_t kMostWalked = 20'000;

}  // namespace

std::string excess_of(const commands::Service& service, const Net& net) {
  const std::size_t most_replies = 2 * service.conversation_limits().output_bytes + kLongestReply;
  std::size_t open = 0;
  for (const commands::Conversation* conversation : service.conversations().all()) {
    if (conversation == nullptr) continue;
    ++open;
    const std::size_t replies = conversation->replies().size();
    if (replies > most_replies)
      return fmt::format("{} bytes of replies are kept for one client", replies);
  }
  const std::uint64_t sessions = service.engine().info().sessions;
  if (sessions != open)
    return fmt::format("{} sessions are open, and {} conversations", sessions, open);
  if (net.is_settled() && open != net.open_connections())
    return fmt::format("{} conversations are open, and {} connections", open,
                       net.open_connections());
  if (service.input().bytes() > open * kInput)
    return fmt::format("{} bytes of input are kept for {} clients", service.input().bytes(), open);
  return {};
}

std::string TickCosts::excess(const engine::Engine& engine) {
  const std::uint64_t walked =
      engine.entries_walked() - std::exchange(walked_, engine.entries_walked());
  most_walked_ = std::max(most_walked_, walked);
  if (walked <= kMostWalked) return {};
  return fmt::format("the engine took {} steps in an iteration of the loop", walked);
}

}  // namespace tubed::simulation
