// Member: one node of a cluster as its configuration has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// The address of a member as text: NAME@HOST:PORT. The host is numeric, with brackets if it is
// IPv6. The port is not 0.
struct MemberAddress {
  std::string name;
  std::string host;  // without brackets; parsed: spelled as inet_ntop(3) does it
  std::uint16_t port = 0;

  // HOST:PORT.
  std::string endpoint() const;

  friend bool operator==(const MemberAddress&, const MemberAddress&) = default;
};
std::string to_string(const MemberAddress& address);
// Nothing: it is no such text.
std::optional<MemberAddress> parse_member_address(std::string_view text);
// 1 to 32 letters, digits, dots, underscores and hyphens.
bool is_node_name(std::string_view name);
// The part before the @; all of an address without an @.
std::string_view name_in(std::string_view address);

}  // namespace tubed::cluster
