// WaitSlots: which requests of HTTP may wait, for a job or for the end of one, at the same time.
//
// All requests together have kMost slots. A role takes a further slot only while more slots are
// free than it has: one role alone takes half of them, two a third each, and there is always one
// for a role that has none. Clients without a role are bounded by kMost alone.
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
  std::map<std::string, std::size_t, std::less<>> used_by_role_;  // without those that have none
};

}  // namespace tubed::http
