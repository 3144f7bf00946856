// Addresses of hosts, without a call of the system. Numeric ones are read as by inet_pton(3), and
// written as by inet_ntop(3). Names are only checked: loop/name_lookup.h resolves them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tubed {

enum class HostFamily : std::uint8_t { ipv4, ipv6 };

struct NumericHost {
  HostFamily family = HostFamily::ipv4;
  // In the order of the network. An IPv4 address is as IPv6 maps it: after ::ffff:0:0/96.
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const NumericHost&, const NumericHost&) = default;
};

// An IPv4 address has four numbers; an IPv6 address, without brackets, has eight groups, of which
// `::` leaves some out, and whose last two may be an IPv4 address. Nothing: `text` is no numeric
// address of the family. O(text).
std::optional<NumericHost> parse_host(HostFamily family, std::string_view text);
// Of either family.
std::optional<NumericHost> parse_host(std::string_view text);

// The one spelling of the address, to which parse_host() gives it back. `::` leaves out the first
// of the longest rows of two groups of zeros or more. O(1).
std::string to_string(const NumericHost& host);

// Returns the name of a host in lower case and without a dot at its end. It has labels of 1 to 63
// letters, digits and hyphens, with no hyphen at either end of a label, and at most 253 characters.
// Nothing: `text` is no such name, or its last label is a number, as in an IPv4 address. O(text).
std::optional<std::string> parse_host_name(std::string_view text);

}  // namespace tubed
