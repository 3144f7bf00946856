#include "access/failed_attempts.h"

#include <algorithm>

#include "os/socket.h"

namespace tubed::access {

Duration FailedAttempts::add(std::string_view client, Time now) {
  std::string name = os::network_of(client);
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
    address.delay = std::max(address.delay / 2, kFirstDelay);
  }
  address.delay = std::min(address.delay * 2, kMaxDelay);
  address.last = now;
  by_age_.splice(by_age_.end(), by_age_, found->second);
  return address.delay;
}

}  // namespace tubed::access
