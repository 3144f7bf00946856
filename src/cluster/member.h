// Member: one node of a cluster as its configuration has it.
#pragma once

#include <string>

#include "cluster/types.h"

namespace tubed::cluster {

enum class MemberRole : std::uint8_t {
  standby = 0,  // gets entries and has no vote
  voter = 1,
  spare = 2,  // gets nothing yet
};

struct Member {
  NodeId id = 0;
  MemberRole role = MemberRole::voter;
  std::string address;  // for other nodes; not empty

  friend bool operator==(const Member&, const Member&) = default;
};

}  // namespace tubed::cluster
