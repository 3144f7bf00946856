// WaitSlots: bounds the requests of HTTP that wait for a job, or for the end of a job, at the same
// time.
//
// All requests together have kMost slots. A role takes another slot only while more slots are free
// than it has: a single role takes half of them, two roles a third each, and a role without a slot
// always finds a slot free. Clients without a role are bounded by kMost alone.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "loop/http_server.h"

namespace tubed::http {

class WaitSlots {
 public:
  static constexpr std::size_t kMost = loop::HttpServer::kMaxWaits;

  enum class Taken : std::uint8_t {
    taken,
    all_are_used,
    share_is_used,  // of the role
  };
  // Takes a slot, which the caller gives back to the same role. `role`: its name; empty: none.
  // O(log roles).
  Taken take(std::string_view role);
  void give_back(std::string_view role);

 private:
  std::size_t used_ = 0;
  std::map<std::string, std::size_t, std::less<>> used_by_role_;  // roles that have slots
};

}  // namespace tubed::http
