#include "text/host.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed {

namespace {

using V4 = std::array<std::uint8_t, 4>;
using V6 = std::array<std::uint16_t, 8>;  // groups

constexpr std::size_t kMapped = 12;  // bytes before an IPv4 address that IPv6 maps

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
    const auto number = parse_number<std::uint8_t>(part);
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
    const auto group = parse_number<std::uint16_t>(part, 16);
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

constexpr std::size_t kMostNameBytes = 253;
constexpr std::size_t kMostLabelBytes = 63;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kMostLabelBytes && label.front() != '-' &&
         label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return is_letter_or_digit(c) || c == '-'; });
}

// getaddrinfo(3) takes a name whose last label is a number for an address of IPv4, also in hex.
bool is_number(std::string_view label) {
  const bool is_hex = label.starts_with("0x");
  if (is_hex) label.remove_prefix(2);
  return std::ranges::all_of(label, [is_hex](char c) {
    return (c >= '0' && c <= '9') || (is_hex && c >= 'a' && c <= 'f');
  });
}

V4 ipv4_of(const NumericHost& host) {
  V4 address{};
  std::copy_n(host.bytes.begin() + kMapped, address.size(), address.begin());
  return address;
}

V6 ipv6_of(const NumericHost& host) {
  V6 address{};
  for (std::size_t i = 0; i < address.size(); ++i)
    address[i] = static_cast<std::uint16_t>(host.bytes[2 * i] << 8 | host.bytes[2 * i + 1]);
  return address;
}

NumericHost host_of(const V4& address) {
  NumericHost host{.family = HostFamily::ipv4};
  host.bytes[kMapped - 2] = host.bytes[kMapped - 1] = 0xff;
  std::ranges::copy(address, host.bytes.begin() + kMapped);
  return host;
}

NumericHost host_of(const V6& address) {
  NumericHost host{.family = HostFamily::ipv6};
  for (std::size_t i = 0; i < address.size(); ++i) {
    host.bytes[2 * i] = static_cast<std::uint8_t>(address[i] >> 8);
    host.bytes[2 * i + 1] = static_cast<std::uint8_t>(address[i]);
  }
  return host;
}

}  // namespace

std::optional<NumericHost> parse_host(HostFamily family, std::string_view text) {
  if (family == HostFamily::ipv6) {
    const auto address = parse_v6(text);
    return address ? std::optional(host_of(*address)) : std::nullopt;
  }
  const auto address = parse_v4(text);
  return address ? std::optional(host_of(*address)) : std::nullopt;
}

std::optional<NumericHost> parse_host(std::string_view text) {
  const auto host = parse_host(HostFamily::ipv4, text);
  return host ? host : parse_host(HostFamily::ipv6, text);
}

std::optional<std::string> parse_host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() > kMostNameBytes) return std::nullopt;
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (std::string_view rest = name;;) {
    const std::size_t end = first_of(rest, '.');
    const std::string_view label = rest.substr(0, end);
    if (!is_label(label)) return std::nullopt;
    if (end == rest.size()) return is_number(label) ? std::nullopt : std::optional(name);
    rest.remove_prefix(end + 1);
  }
}

std::string to_string(const NumericHost& host) {
  return host.family == HostFamily::ipv4 ? to_text(ipv4_of(host)) : to_text(ipv6_of(host));
}

}  // namespace tubed
