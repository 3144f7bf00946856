// Version 1 is a line of text, version 2 a fixed part of 16 bytes that ends with the length of the
// rest. Both are recognized by their first bytes, so a connection that does not begin with a header
// is refused at its first wrong byte.
//
// Of version 2, a command, family or protocol that the specification does not define is an error. A
// defined combination other than a stream of TCP or of a unix socket is accepted without an address
// [section 2.2]. Addresses and fields that exceed the header's length, and a wrong checksum, are
// errors.
#include "loop/proxy_header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "text/host.h"
#include "text/numbers.h"
#include "text/utf8.h"

namespace tubed::loop {

namespace {

using Header = std::optional<ProxyHeader>;

constexpr std::string_view kLineStart = "PROXY ";
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kFixedBytes = 16;

// True if more bytes could make `received` begin with `start`.
bool may_begin_with(std::string_view received, std::string_view start) {
  const std::size_t common = std::min(received.size(), start.size());
  return received.substr(0, common) == start.substr(0, common);
}

// Without the IPv6 form of an IPv4 address, for which other connections of the client have the
// IPv4 form.
std::string text_of(const NumericHost& host, std::uint16_t port) {
  const std::string text = to_string(host);
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped) && text.find('.') != std::string::npos)
    return fmt::format("{}:{}", std::string_view(text).substr(kMapped.size()), port);
  return host.family == HostFamily::ipv6 ? fmt::format("[{}]:{}", text, port)
                                         : fmt::format("{}:{}", text, port);
}

// --- Version 1

// Takes the word up to the next space, which it takes too, or up to the end.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::optional<std::uint16_t> parse_port(std::string_view word) {
  if (word.size() > 1 && word.front() == '0') return std::nullopt;
  return parse_number<std::uint16_t>(word);
}

// `line`: without its end. Returns no value if it is malformed.
std::optional<ProxiedClient> read_line(std::string_view line) {
  std::string_view rest = line.substr(kLineStart.size());
  const std::string_view protocol = take_word(rest);
  if (protocol == "UNKNOWN") return ProxiedClient{};
  if (protocol != "TCP4" && protocol != "TCP6") return std::nullopt;
  const HostFamily family = protocol == "TCP4" ? HostFamily::ipv4 : HostFamily::ipv6;
  const auto source = parse_host(family, take_word(rest));
  const auto destination = parse_host(family, take_word(rest));
  const auto source_port = parse_port(take_word(rest));
  const auto destination_port = parse_port(rest);
  if (!source || !destination || !source_port || !destination_port) return std::nullopt;
  return ProxiedClient{.address = text_of(*source, *source_port), .tls_name = {}};
}

Result<Header> parse_line(std::string_view received) {
  const std::size_t end = received.substr(0, kMaxProxyLine).find_first_of("\r\n");
  if (end == std::string_view::npos) {
    if (received.size() < kMaxProxyLine) return Header();
    return Error{fmt::format("a PROXY line of more than {} bytes", kMaxProxyLine)};
  }
  constexpr std::string_view kLineEnd = "\r\n";
  const std::size_t bytes = end + kLineEnd.size();
  if (bytes > kMaxProxyLine)
    return Error{fmt::format("a PROXY line of more than {} bytes", kMaxProxyLine)};
  if (!may_begin_with(received.substr(end), kLineEnd))
    return Error{"the PROXY line does not end with CR LF"};
  if (received.size() < bytes) return Header();
  auto client = read_line(received.substr(0, end));
  if (!client) return Error{"malformed PROXY line"};
  return Header({.bytes = bytes, .client = std::move(*client)});
}

// --- Version 2

enum class Command : std::uint8_t { local = 0, proxy = 1 };
enum class Family : std::uint8_t { unspecified = 0, ipv4 = 1, ipv6 = 2, unix_socket = 3 };
enum class Transport : std::uint8_t { unspecified = 0, stream = 1, datagram = 2 };

constexpr std::size_t kMaxUnixPath = 108;
constexpr std::size_t kPortBytes = 2;
// A longer name is not shown; X.520 allows 64 characters.
constexpr std::size_t kMaxTlsName = 256;

std::uint8_t byte_of(std::string_view bytes, std::size_t place) {
  return static_cast<std::uint8_t>(bytes[place]);
}

// A big-endian number.
std::uint32_t number_of(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<std::uint8_t>(c);
  return number;
}

// Source and destination, each with its port.
constexpr std::size_t address_bytes(Family family) {
  switch (family) {
    case Family::ipv4:
      return 2 * (4 + kPortBytes);
    case Family::ipv6:
      return 2 * (16 + kPortBytes);
    case Family::unix_socket:
      return 2 * kMaxUnixPath;
    case Family::unspecified:
      break;
  }
  return 0;
}

// `path` as an address of one word: with a character that would need quotes in a list of clients,
// and without a path, it is only "unix".
std::string unix_address(std::string_view path) {
  const bool is_abstract = path.size() > 1 && path.front() == '\0' && path[1] != '\0';
  if (is_abstract) path.remove_prefix(1);
  path = path.substr(0, path.find('\0'));
  const bool is_plain =
      std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7f && c != '#' && c != ':'; });
  if (path.empty() || !is_plain) return "unix";
  return fmt::format("unix:{}{}", is_abstract ? "@" : "", path);
}

std::string source_of(Family family, std::string_view addresses) {
  if (family == Family::unix_socket) return unix_address(addresses.substr(0, kMaxUnixPath));
  const std::size_t host_bytes = family == Family::ipv4 ? 4 : 16;
  NumericHost host{.family = family == Family::ipv4 ? HostFamily::ipv4 : HostFamily::ipv6};
  if (family == Family::ipv4) host.bytes[10] = host.bytes[11] = 0xff;
  std::transform(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(host_bytes),
                 host.bytes.end() - static_cast<std::ptrdiff_t>(host_bytes),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return text_of(
      host, static_cast<std::uint16_t>(number_of(addresses.substr(2 * host_bytes, kPortBytes))));
}

struct Field {
  std::uint8_t type = 0;
  std::string_view value;
};

// Takes the field at the front. Returns no value if it does not fit.
std::optional<Field> take_field(std::string_view& fields) {
  constexpr std::size_t kFieldStart = 3;  // type and length
  if (fields.size() < kFieldStart) return std::nullopt;
  const std::size_t length = number_of(fields.substr(1, 2));
  if (fields.size() - kFieldStart < length) return std::nullopt;
  const Field field{byte_of(fields, 0), fields.substr(kFieldStart, length)};
  fields.remove_prefix(kFieldStart + length);
  return field;
}

// Types of fields, and of fields within kTls. [sections 2.2.3 and 2.2.6]
constexpr std::uint8_t kChecksum = 0x03;
constexpr std::uint8_t kTls = 0x20;
constexpr std::uint8_t kTlsName = 0x22;

bool is_shown(std::string_view name) {
  return name.size() <= kMaxTlsName && is_utf8(name) && std::ranges::none_of(name, [](char c) {
           return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
         });
}

// Takes the common name of a verified certificate from a field kTls. Returns false if the field is
// malformed.
bool read_tls(std::string_view value, std::string& name) {
  constexpr std::uint8_t kOverTls = 0x01;
  constexpr std::uint8_t kHasCertificate = 0x02 | 0x04;  // of the connection or of its session
  constexpr std::size_t kTlsStart = 5;
  if (value.size() < kTlsStart) return false;
  const std::uint8_t client = byte_of(value, 0);
  const bool is_verified = (client & kOverTls) != 0 && (client & kHasCertificate) != 0 &&
                           number_of(value.substr(1, 4)) == 0;
  std::string_view fields = value.substr(kTlsStart);
  while (!fields.empty()) {
    const auto field = take_field(fields);
    if (!field) return false;
    if (field->type == kTlsName && is_verified && name.empty() && is_shown(field->value))
      name = field->value;
  }
  return true;
}

// CRC-32C of the header, in which the checksum counts as zeros.
bool is_intact(std::string_view header, std::string_view checksum) {
  constexpr std::string_view kZeros("\0\0\0\0", 4);
  if (checksum.size() != kZeros.size()) return false;
  const auto place = static_cast<std::size_t>(checksum.data() - header.data());
  std::uint32_t crc = crc32c(0, header.substr(0, place));
  crc = crc32c(crc, kZeros);
  return crc32c(crc, header.substr(place + kZeros.size())) == number_of(checksum);
}

// `header`: the whole header. The error is the reason.
Result<ProxiedClient> read_binary(std::string_view header) {
  const std::uint8_t command = byte_of(header, 12) & 0x0f;
  const auto family = static_cast<Family>(byte_of(header, 13) >> 4);
  const auto transport = static_cast<Transport>(byte_of(header, 13) & 0x0f);
  if (command == static_cast<std::uint8_t>(Command::local)) return ProxiedClient{};
  if (command != static_cast<std::uint8_t>(Command::proxy)) return Error{"unknown PROXY command"};
  if (family > Family::unix_socket || transport > Transport::datagram)
    return Error{"unknown family or protocol in the PROXY header"};
  if (family == Family::unspecified || transport != Transport::stream) return ProxiedClient{};
  std::string_view rest = header.substr(kFixedBytes);
  if (rest.size() < address_bytes(family))
    return Error{"the PROXY header is too short for its addresses"};
  ProxiedClient client{.address = source_of(family, rest), .tls_name = {}};
  rest.remove_prefix(address_bytes(family));
  while (!rest.empty()) {
    const auto field = take_field(rest);
    if (!field || (field->type == kTls && !read_tls(field->value, client.tls_name)))
      return Error{"malformed field in the PROXY header"};
    if (field->type == kChecksum && !is_intact(header, field->value))
      return Error{"wrong checksum of the PROXY header"};
  }
  return client;
}

Result<Header> parse_binary(std::string_view received) {
  constexpr std::uint8_t kVersion = 2;
  constexpr std::size_t kVersionPlace = 12;
  if (received.size() > kVersionPlace && byte_of(received, kVersionPlace) >> 4 != kVersion)
    return Error{"unknown version of the PROXY protocol"};
  if (received.size() < kFixedBytes) return Header();
  const std::size_t bytes = kFixedBytes + number_of(received.substr(kFixedBytes - 2, 2));
  if (bytes > kMaxProxyHeader)
    return Error{fmt::format("a PROXY header of more than {} bytes", kMaxProxyHeader)};
  if (received.size() < bytes) return Header();
  auto client = TRY(read_binary(received.substr(0, bytes)));
  return Header({.bytes = bytes, .client = std::move(client)});
}

}  // namespace

Result<std::optional<ProxyHeader>> parse_proxy_header(std::string_view received) {
  if (may_begin_with(received, kLineStart)) {
    if (received.size() < kLineStart.size()) return Header();
    return parse_line(received);
  }
  if (!may_begin_with(received, kSignature)) return Error{"no PROXY header"};
  if (received.size() < kSignature.size()) return Header();
  return parse_binary(received);
}

}  // namespace tubed::loop
