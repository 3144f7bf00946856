#include "server/failed_attempts.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace tubed::server {

namespace {

constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address

// Without the port; every client of a unix socket has the same.
std::string name_of(std::string_view peer) {
  if (peer.starts_with("unix")) return "unix";
  const std::string host(peer.substr(0, peer.rfind(':')));
  if (!host.starts_with('[')) return host;
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const std::string bare = host.substr(1, host.size() - 2);
  if (inet_pton(AF_INET6, bare.c_str(), address.data()) != 1) return host;
  return std::string(address.begin(), address.begin() + kNetworkBytes);
}

}  // namespace

Duration FailedAttempts::add(std::string_view peer, Time now) {
  std::string name = name_of(peer);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    if (by_age_.size() >= kMaxAddresses) {
      by_name_.erase(by_age_.front().name);
      by_age_.pop_front();
    }
    by_age_.push_back({name, kFirstDelay, now});
    by_name_.emplace(std::move(name), std::prev(by_age_.end()));
    return kFirstDelay;
  }
  Address& address = *found->second;
  for (Time then = address.last; then + kForgiveness <= now && address.delay > kFirstDelay;
       then += kForgiveness) {
    address.delay /= 2;
  }
  address.delay = std::clamp(address.delay * 2, kFirstDelay, kMaxDelay);
  address.last = now;
  by_age_.splice(by_age_.end(), by_age_, found->second);
  return address.delay;
}

}  // namespace tubed::server
