#include "tests/wire/in_process_driver.h"

#include <algorithm>

#include "tests/protocol/take_replies.h"

namespace tubed::wire {

namespace {

constexpr Time kStart{std::chrono::hours(1)};

Limits limits_of(const Options& options) {
  Limits limits;
  limits.tubes_with_metrics = 1000;  // as the default of http.max_tubes
  if (options.job_bytes) limits.job_bytes = static_cast<std::uint32_t>(*options.job_bytes);
  if (options.tubes) limits.tubes = static_cast<std::uint32_t>(*options.tubes);
  if (options.job_memory) limits.job_memory_bytes = *options.job_memory;
  if (options.watches) limits.watches = static_cast<std::uint32_t>(*options.watches);
  if (options.policies) limits.policies = static_cast<std::uint32_t>(*options.policies);
  return limits;
}

stats::Identity identity() {
  return {.process_id = 1,
          .instance = "0123456789abcdef",
          .hostname = "host",
          .os = "#1 SMP",
          .platform = "x86_64",
          .started = kStart};
}

}  // namespace

InProcessDriver::InProcessDriver(const Options& options)
    : service_(limits_of(options), identity(), {[] { return stats::CpuTimes{}; }}),
      own_(service_) {}

InProcessDriver::~InProcessDriver() {
  connections_.clear();
}

void InProcessDriver::open(Client client) {
  connections_.resize(std::max(connections_.size(), client + 1));
  connections_[client].conversation = std::make_unique<commands::Conversation>(service_);
}

void InProcessDriver::send(Client client, std::string_view bytes) {
  auto& conversation = connections_[client].conversation;
  if (conversation == nullptr) return;
  // Half of the bytes of a body are read straight into the job's memory, as with large bodies.
  const std::span<char> space = conversation->body_space();
  const std::size_t direct = std::min(space.size() / 2, bytes.size());
  if (direct > 0) {
    std::copy_n(bytes.begin(), direct, space.begin());
    conversation->body_received(direct);
  }
  conversation->receive(bytes.substr(direct));
  wait_until_idle();
}

Received InProcessDriver::receive(Client client, std::size_t) {
  Connection& connection = connections_[client];
  return {std::exchange(connection.received, {}), connection.conversation == nullptr};
}

void InProcessDriver::half_close(Client client) {
  if (connections_[client].conversation != nullptr) connections_[client].conversation->end_input();
  wait_until_idle();
}

void InProcessDriver::close(Client client) {
  connections_[client].conversation.reset();
  wait_until_idle();
}

void InProcessDriver::wait_until_idle() {
  std::vector<SessionId> notified;
  bool again = true;
  while (again) {
    service_.take_notified(notified);
    again = !notified.empty();
    for (Connection& connection : connections_) again = resume(connection) || again;
  }
  service_.engine().check_invariants();
}

// Takes the replies and resumes deferred work. True if work was resumed or the connection ended.
bool InProcessDriver::resume(Connection& connection) {
  auto& conversation = connection.conversation;
  if (conversation == nullptr) return false;
  connection.received += protocol::take_replies(conversation->replies());
  const bool resumed = conversation->can_resume();
  if (resumed) conversation->resume();
  const bool over = conversation->finished() && conversation->replies().empty();
  if (over) conversation.reset();
  return resumed || over;
}

void InProcessDriver::advance(Duration time) {
  const Time target = service_.now() + time;
  for (;;) {
    const engine::Deadlines due = service_.engine().next_deadlines();
    const Time next = due.closing ? service_.now() : std::min({due.delay, due.ttr, due.pause});
    if (next > target) break;
    service_.begin_tick(next);
    wait_until_idle();
  }
  service_.begin_tick(target);
  wait_until_idle();
}

}  // namespace tubed::wire
