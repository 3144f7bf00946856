// Numeric addresses of hosts: read as inet_pton(3) reads them, and written as inet_ntop(3) does,
// without a call of the system.
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

}  // namespace tubed
