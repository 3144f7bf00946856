// Hosts are read and written here as inet_pton(3) and inet_ntop(3) do it, because a pure folder
// makes no calls of the system: an IPv4 address is four numbers; an IPv6 address is eight groups of
// 16 bits, of which the longest row of at least two zeros is left out (the first of equal length),
// and the last two may be an IPv4 address.
#include "cluster/member.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace tubed::cluster {

namespace {

constexpr std::size_t kMostNameBytes = 32;

using V4 = std::array<std::uint8_t, 4>;
using V6 = std::array<std::uint16_t, 8>;  // groups

// All of `text` is one number without a sign.
template <class T>
std::optional<T> number_in(std::string_view text, int base) {
  T number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// The place of the character, or the end. Not find(): with link-time optimization g++ 12 warns of
// its memchr in code that cannot run.
std::size_t first_of(std::string_view text, char c) {
  return static_cast<std::size_t>(std::ranges::find(text, c) - text.begin());
}

std::optional<V4> parse_v4(std::string_view text) {
  V4 address{};
  for (std::size_t i = 0; i < address.size(); ++i) {
    const std::size_t end = first_of(text, '.');
    const std::string_view part = text.substr(0, end);
    const bool last = i + 1 == address.size();
    const auto number = number_in<std::uint8_t>(part, 10);
    if (!number || (part.size() > 1 && part.front() == '0') || last != (end == text.size()))
      return std::nullopt;
    address[i] = *number;
    text = text.substr(last ? end : end + 1);
  }
  return address;
}

std::string to_text(const V4& address) {
  return fmt::format("{}.{}.{}.{}", address[0], address[1], address[2], address[3]);
}

// Appends the groups of `text`, which are separated by colons, to the first `count` of `address`.
// Only at the end of the whole address (`tail`) may they end in an IPv4 address.
bool read_groups(std::string_view text, bool tail, V6& address, std::size_t& count) {
  while (!text.empty()) {
    const std::size_t end = first_of(text, ':');
    const std::string_view part = text.substr(0, end);
    const bool last = end == text.size();
    if (first_of(part, '.') < part.size()) {
      const auto v4 = parse_v4(part);
      if (!v4 || !last || !tail || count + 2 > address.size()) return false;
      address[count++] = static_cast<std::uint16_t>((*v4)[0] << 8 | (*v4)[1]);
      address[count++] = static_cast<std::uint16_t>((*v4)[2] << 8 | (*v4)[3]);
      return true;
    }
    const auto group = number_in<std::uint16_t>(part, 16);
    if (!group || part.size() > 4 || count == address.size()) return false;
    address[count++] = *group;
    if (last) return true;
    text = text.substr(end + 1);
    if (text.empty()) return false;  // a colon at the end
  }
  return true;
}

std::optional<V6> parse_v6(std::string_view text) {
  const std::size_t gap = text.find("::");
  V6 head{};
  std::size_t heads = 0;
  if (gap == std::string_view::npos) {
    if (!read_groups(text, true, head, heads) || heads != head.size()) return std::nullopt;
    return head;
  }
  V6 tail{};
  std::size_t tails = 0;
  if (!read_groups(text.substr(0, gap), false, head, heads) ||
      !read_groups(text.substr(gap + 2), true, tail, tails) || heads + tails >= head.size()) {
    return std::nullopt;
  }
  std::copy_n(tail.begin(), tails, head.end() - static_cast<std::ptrdiff_t>(tails));
  return head;
}

std::string to_text(const V6& address) {
  std::size_t gap = 0;
  std::size_t gap_groups = 0;
  for (std::size_t i = 0, row = 0; i < address.size(); ++i) {
    row = address[i] == 0 ? row + 1 : 0;
    if (row < 2 || row <= gap_groups) continue;
    gap_groups = row;
    gap = i + 1 - row;
  }
  // ::ffff:1.2.3.4 and ::1.2.3.4.
  const bool has_v4 = gap == 0 && (gap_groups == 6 || (gap_groups == 5 && address[5] == 0xffff));
  std::string text;
  for (std::size_t i = 0; i < (has_v4 ? 6U : 8U); ++i) {
    if (gap_groups != 0 && i == gap) {
      text += "::";
      i += gap_groups - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += fmt::format("{:x}", address[i]);
  }
  if (!has_v4) return text;
  if (text.back() != ':') text += ':';
  const auto byte = [&](std::size_t group, int shift) {
    return static_cast<std::uint8_t>(address[group] >> shift);
  };
  return text + to_text(V4{byte(6, 8), byte(6, 0), byte(7, 8), byte(7, 0)});
}

// The canonical spelling of a numeric host. Nothing: it is not numeric.
std::optional<std::string> canonical_host(std::string_view host, bool is_v6) {
  if (is_v6) {
    const auto address = parse_v6(host);
    return address ? std::optional(to_text(*address)) : std::nullopt;
  }
  const auto address = parse_v4(host);
  return address ? std::optional(to_text(*address)) : std::nullopt;
}

}  // namespace

std::string MemberAddress::endpoint() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
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
  const auto canonical = canonical_host(host, is_v6);
  const auto port = number_in<std::uint16_t>(text.substr(colon + 1), 10);
  const std::string_view name = text.substr(0, at);
  if (!is_node_name(name) || !canonical || !port || *port == 0) return std::nullopt;
  return MemberAddress{std::string(name), *canonical, *port};
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
