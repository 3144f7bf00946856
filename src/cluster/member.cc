#include "cluster/member.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/host.h"
#include "text/numbers.h"

namespace tubed::cluster {

namespace {

constexpr std::size_t kMostNameBytes = 32;

}  // namespace

std::string MemberAddress::endpoint() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool MemberAddress::has_host_name() const {
  return !parse_host(host);
}

std::string to_string(const MemberAddress& address) {
  return fmt::format("{}@{}", address.name, address.endpoint());
}

std::optional<MemberAddress> parse_member_address(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::size_t colon = text.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at)
    return std::nullopt;
  std::string_view host = text.substr(at + 1, colon - at - 1);
  const bool is_v6 = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (is_v6) host = host.substr(1, host.size() - 2);
  const auto numeric = parse_host(is_v6 ? HostFamily::ipv6 : HostFamily::ipv4, host);
  const auto named = is_v6 || numeric ? std::nullopt : parse_host_name(host);
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  const std::string_view name = text.substr(0, at);
  if (!is_node_name(name) || (!numeric && !named) || !port || *port == 0) return std::nullopt;
  return MemberAddress{std::string(name), numeric ? to_string(*numeric) : *named, *port};
}

bool is_node_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string_view name_in(std::string_view address) {
  return address.substr(0, address.find('@'));
}

}  // namespace tubed::cluster
