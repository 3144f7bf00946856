#include "tests/simulation/bridges.h"

#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

namespace tubed::simulation {

namespace {

constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

bool has_hung_up(int descriptor) {
  pollfd watched{.fd = descriptor, .events = 0, .revents = 0};
  ::poll(&watched, 1, 0);
  return (watched.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

Bridges::Bridges() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  TUBED_ASSERT(epoll_ >= 0);
}

Bridges::~Bridges() {
  reset_all();
  ::close(epoll_);
}

int Bridges::add(std::shared_ptr<Endpoint> endpoint) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return -1;
  const std::uint64_t number = next_++;
  endpoint->on_event([this, number] { ready_.insert(number); });
  epoll_event watched{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u64 = number}};
  TUBED_ASSERT(::epoll_ctl(epoll_, EPOLL_CTL_ADD, ends[0], &watched) == 0);
  bridges_.emplace(number, Bridge{.descriptor = ends[0], .endpoint = std::move(endpoint)});
  ready_.insert(number);  // bytes may have arrived
  return ends[1];
}

void Bridges::pump() {
  if (bridges_.empty()) return;
  std::array<epoll_event, 64> events;
  for (int count = 64; count == 64;) {
    count = ::epoll_wait(epoll_, events.data(), 64, 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;  // unaligned
      ready_.insert(number);
    }
  }
  // In the order of the connections, whatever the kernel's order.
  for (const std::uint64_t number : std::exchange(ready_, {})) {
    const auto found = bridges_.find(number);
    if (found == bridges_.end()) continue;
    Bridge& bridge = found->second;
    if (pass(bridge)) {
      if (!bridge.unsent.empty()) ready_.insert(number);
      continue;
    }
    bridge.endpoint->on_event({});
    ::close(bridge.descriptor);
    bridges_.erase(found);
  }
}

void Bridges::reset_all() {
  for (const auto& [number, bridge] : bridges_) {
    bridge.endpoint->on_event({});
    bridge.endpoint->reset();
    ::close(bridge.descriptor);
  }
  bridges_.clear();
  ready_.clear();
}

bool Bridges::pass(Bridge& bridge) {
  if (bridge.endpoint->lost()) return false;
  pass_to_process(bridge);
  return pass_to_client(bridge);
}

void Bridges::pass_to_process(Bridge& bridge) {
  Endpoint& endpoint = *bridge.endpoint;
  const std::string_view arrived = endpoint.arrived();
  if (!arrived.empty()) {
    const ssize_t sent = ::send(bridge.descriptor, arrived.data(), arrived.size(), kFlags);
    // Bytes that the process no longer reads are lost.
    if (sent >= 0 || errno != EAGAIN)
      endpoint.take(sent > 0 ? static_cast<std::size_t>(sent) : arrived.size());
  }
  const bool is_end = endpoint.ended() && endpoint.arrived().empty();
  if (is_end && !std::exchange(bridge.client_has_ended, true))
    ::shutdown(bridge.descriptor, SHUT_WR);
}

bool Bridges::pass_to_client(Bridge& bridge) {
  Endpoint& endpoint = *bridge.endpoint;
  std::array<char, 16 * 1024> bytes;
  for (;;) {
    bridge.unsent.erase(0, endpoint.send(bridge.unsent));
    if (!bridge.unsent.empty()) return true;
    if (bridge.process_has_ended) break;
    const ssize_t got = ::recv(bridge.descriptor, bytes.data(), bytes.size(), kFlags);
    if (got > 0) {
      bridge.unsent.assign(bytes.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      return true;
    } else if (got < 0) {
      endpoint.reset();
      return false;
    } else {
      bridge.process_has_ended = true;
      endpoint.end_output();
    }
  }
  // The process has closed the connection, or only ended its output.
  if (!has_hung_up(bridge.descriptor)) return true;
  endpoint.close();
  return false;
}

}  // namespace tubed::simulation
