// FailedAttempts: the delays of refusals of wrong tokens, by address.
//
// Each failure of an address doubles its delay, up to kMaxDelay; each kForgiveness without a
// failure halves it. A right token is never delayed. When more than kMaxAddresses are known, the
// address with the oldest last failure is forgotten.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"

namespace tubed::access {

class FailedAttempts {
 public:
  static constexpr Duration kFirstDelay = std::chrono::milliseconds(100);
  static constexpr Duration kMaxDelay = std::chrono::seconds(5);
  static constexpr Duration kForgiveness = std::chrono::seconds(30);
  static constexpr std::size_t kMaxAddresses = 4096;

  // Counts a failed attempt of `client`, as os::peer_address() returns it. Returns the delay of its
  // refusal. IPv6 addresses of one /64 network count as one address. O(1).
  Duration add(std::string_view client, Time now);

  std::size_t addresses() const { return by_age_.size(); }

 private:
  struct Address {
    std::string name;
    Duration delay;
    Time last;
  };

  std::list<Address> by_age_;  // the oldest failure first
  std::unordered_map<std::string, std::list<Address>::iterator> by_name_;
};

}  // namespace tubed::access
