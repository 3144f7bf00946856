// Member: a node of a cluster, as described by the configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/types.h"

namespace tubed::cluster {

enum class MemberRole : std::uint8_t {
  standby = 0,  // receives entries but has no vote
  voter = 1,
  spare = 2,  // receives nothing yet
};

struct Member {
  NodeId id = 0;
  MemberRole role = MemberRole::voter;
  std::string address;  // for other nodes; not empty
  // A standby that does not become a voter by itself, from kLevelOfStandbys.
  bool stays = false;

  friend bool operator==(const Member&, const Member&) = default;
};

// The address of a member as text: NAME@HOST:PORT. The host is numeric, in brackets if it is IPv6,
// or the name of a host, from kLevelOfNames. The port is not 0.
struct MemberAddress {
  std::string name;
  std::string
      host;  // without brackets; parsing spells it as inet_ntop(3) or parse_host_name() does
  std::uint16_t port = 0;

  // True if the host is a name, which is resolved when the member is dialled. O(host).
  bool has_host_name() const;

  // Returns HOST:PORT.
  std::string endpoint() const;

  friend bool operator==(const MemberAddress&, const MemberAddress&) = default;
};
std::string to_string(const MemberAddress& address);
// Returns nothing if the text is not such an address.
std::optional<MemberAddress> parse_member_address(std::string_view text);
// True for 1 to 32 letters, digits, dots, underscores and hyphens.
bool is_node_name(std::string_view name);
// Returns the part before the @, or the whole address without an @.
std::string_view name_in(std::string_view address);

}  // namespace tubed::cluster
