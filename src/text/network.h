// Networks of numeric addresses, in CIDR notation: "10.0.0.0/8", "fd00::/8".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/host.h"

namespace tubed {

struct Network {
  NumericHost address;  // without bits after the prefix
  unsigned prefix = 0;  // bits; at most 32 for IPv4 and 128 for IPv6
};

// Reads ADDRESS/BITS, or ADDRESS as the network of this address alone. Nothing: `text` is no
// network, for the reason that network_mistake() returns. O(text).
std::optional<Network> parse_network(std::string_view text);
// Returns why `text` is no network, without the text: "has no prefix from 0 to 32". Empty: it is
// one. O(text).
std::string network_mistake(std::string_view text);

// True if the network contains the host. IPv4 networks contain IPv4 hosts, also as IPv6 maps them
// (::ffff:10.0.0.1); IPv6 networks contain all other IPv6 hosts. O(1).
bool contains(const Network& network, const NumericHost& host);

}  // namespace tubed
