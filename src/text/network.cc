#include "text/network.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed {

namespace {

// Of the prefix under which IPv6 maps IPv4 addresses, ::ffff:0:0/96.
constexpr unsigned kMappedBits = 96;

bool is_ipv4(const NumericHost& host) {
  return std::all_of(host.bytes.begin(), host.bytes.begin() + 10, [](auto b) { return b == 0; }) &&
         host.bytes[10] == 0xff && host.bytes[11] == 0xff;
}

// Clears all bits after the first `bits`.
NumericHost first_bits(NumericHost host, unsigned bits) {
  for (auto& byte : host.bytes) {
    const unsigned here = std::min(bits, 8U);
    byte &= static_cast<std::uint8_t>(0xff00U >> here);
    bits -= here;
  }
  return host;
}

// The prefix in the 128 bits of NumericHost::bytes.
unsigned prefix_in_ipv6(const Network& network) {
  return network.address.family == HostFamily::ipv4 ? kMappedBits + network.prefix : network.prefix;
}

// Returns the network, or why there is none.
std::variant<Network, std::string> read_network(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto host = parse_host(text.substr(0, slash));
  if (!host) return "is not a network such as 10.0.0.0/8 or fd00::/8";
  if (host->family == HostFamily::ipv6 && is_ipv4(*host))
    return "is an IPv4 network in the notation of IPv6; write it as 10.0.0.0/8";
  const unsigned most = host->family == HostFamily::ipv4 ? 32 : 128;
  Network network{.address = *host, .prefix = most};
  if (slash < text.size()) {
    const auto prefix = parse_number<std::uint8_t>(text.substr(slash + 1));
    if (!prefix || *prefix > most) return fmt::format("has no prefix from 0 to {}", most);
    network.prefix = *prefix;
  }
  network.address = first_bits(*host, prefix_in_ipv6(network));
  if (network.address.bytes != host->bytes) {
    return fmt::format("has bits after its prefix; the network is {}/{}",
                       to_string(network.address), network.prefix);
  }
  return network;
}

}  // namespace

std::optional<Network> parse_network(std::string_view text) {
  const auto read = read_network(text);
  const auto* const network = std::get_if<Network>(&read);
  return network == nullptr ? std::nullopt : std::optional(*network);
}

std::string network_mistake(std::string_view text) {
  const auto read = read_network(text);
  const auto* const mistake = std::get_if<std::string>(&read);
  return mistake == nullptr ? std::string() : *mistake;
}

bool contains(const Network& network, const NumericHost& host) {
  if (is_ipv4(host) != (network.address.family == HostFamily::ipv4)) return false;
  return first_bits(host, prefix_in_ipv6(network)).bytes == network.address.bytes;
}

}  // namespace tubed
