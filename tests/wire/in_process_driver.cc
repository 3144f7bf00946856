#include "tests/wire/in_process_driver.h"

#include <algorithm>

namespace tubed::wire {

namespace {

Limits limits_of(const Options& options) {
  Limits limits;
  limits.tubes_with_metrics = 1000;  // the default of http.max_tubes
  if (options.job_bytes) limits.job_bytes = static_cast<std::uint32_t>(*options.job_bytes);
  if (options.tubes) limits.tubes = static_cast<std::uint32_t>(*options.tubes);
  if (options.job_memory) limits.job_memory_bytes = *options.job_memory;
  if (options.watches) limits.watches = static_cast<std::uint32_t>(*options.watches);
  if (options.policies) limits.policies = static_cast<std::uint32_t>(*options.policies);
  return limits;
}

}  // namespace

InProcessDriver::InProcessDriver(const Options& options)
    : talk_(limits_of(options)), own_(talk_.service) {}

InProcessDriver::~InProcessDriver() {
  connections_.clear();
}

void InProcessDriver::open(Client client) {
  connections_.resize(std::max(connections_.size(), client + 1));
  connections_[client].conversation = talk_.connect();
}

void InProcessDriver::send(Client client, std::string_view bytes) {
  auto& conversation = connections_[client].conversation;
  if (conversation == nullptr) return;
  // Half of the bytes of a body are read directly into the job's memory, as for large bodies.
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
  commands::Talker& connection = connections_[client];
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
  talk_.run_until_idle(connections_);
}

void InProcessDriver::advance(Duration time) {
  const Time target = talk_.service.now() + time;
  for (;;) {
    const engine::Deadlines due = talk_.service.engine().next_deadlines();
    const Time next = due.closing ? talk_.service.now() : std::min({due.delay, due.ttr, due.pause});
    if (next > target) break;
    talk_.service.begin_tick(next);
    wait_until_idle();
  }
  talk_.service.begin_tick(target);
  wait_until_idle();
}

}  // namespace tubed::wire
