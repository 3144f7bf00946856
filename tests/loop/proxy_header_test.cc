// The examples and the rules of the specification of the PROXY protocol.
#include "loop/proxy_header.h"

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/crc32c.h"

namespace tubed::loop_test {

using loop::kMaxProxyHeader;
using loop::kMaxProxyLine;
using loop::parse_proxy_header;
using loop::ProxiedClient;

namespace {

using namespace std::string_literals;

const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;

std::string big_endian(std::uint32_t number, unsigned bytes) {
  std::string text;
  for (unsigned i = bytes; i-- > 0;) text += static_cast<char>(number >> (8 * i));
  return text;
}

// A header of version 2.
std::string binary(std::uint8_t command, std::uint8_t family, const std::string& rest) {
  return kSignature + static_cast<char>(0x20 | command) + static_cast<char>(family) +
         big_endian(static_cast<std::uint32_t>(rest.size()), 2) + rest;
}

std::string field(std::uint8_t type, const std::string& value) {
  return static_cast<char>(type) + big_endian(static_cast<std::uint32_t>(value.size()), 2) + value;
}

// A field for TLS, with the bits of the client and the result of the verification.
std::string tls(std::uint8_t client, std::uint32_t verify, const std::string& fields) {
  return field(0x20, static_cast<char>(client) + big_endian(verify, 4) + fields);
}

std::string name(const std::string& text) {
  return field(0x22, text);
}

// 192.0.2.1:50312 to 198.51.100.9:11300.
const std::string kIpv4 =
    "\xc0\x00\x02\x01\xc6\x33\x64\x09"s + big_endian(50312, 2) + big_endian(11300, 2);

std::string ipv4(const std::string& fields) {
  return binary(1, 0x11, kIpv4 + fields);
}

std::string path(const std::string& text) {
  return text + std::string(108 - text.size(), '\0');
}

// The client of a whole header. No bytes after it change it, and each part of it is incomplete.
ProxiedClient client_of(const std::string& header) {
  for (std::size_t bytes = 0; bytes < header.size(); ++bytes) {
    const auto part = parse_proxy_header(std::string_view(header).substr(0, bytes));
    CAPTURE(bytes);
    REQUIRE_MESSAGE(part.ok(), part.error().message);
    REQUIRE_FALSE(part.value().has_value());
  }
  ProxiedClient client;
  for (const auto& after : {""s, "stats\r\n"s, "\r\n"s, std::string(5000, '\0')}) {
    const auto parsed = parse_proxy_header(header + after);
    REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
    REQUIRE(parsed.value().has_value());
    CHECK((*parsed)->bytes == header.size());
    client = (*parsed)->client;
  }
  return client;
}

std::string address_of(const std::string& header) {
  const ProxiedClient client = client_of(header);
  CHECK(client.tls_name.empty());
  return client.address;
}

std::string name_of(const std::string& header) {
  const ProxiedClient client = client_of(header);
  CHECK(client.address == "192.0.2.1:50312");
  return client.tls_name;
}

std::string error_of(const std::string& received) {
  const auto parsed = parse_proxy_header(received);
  if (parsed) return parsed.value() ? "a header" : "incomplete";
  return parsed.error().message;
}

}  // namespace

TEST_CASE("the line of version 1 names the client") {
  CHECK(address_of("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n") == "192.168.0.1:56324");
  CHECK(address_of("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n") ==
        "255.255.255.255:65535");
  CHECK(address_of("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n") == "0.0.0.0:0");
  CHECK(address_of("PROXY TCP6 2001:DB8::1 2001:db8:0:0:0:0:0:2 56324 443\r\n") ==
        "[2001:db8::1]:56324");
  const std::string all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  CHECK(address_of(fmt::format("PROXY TCP6 {} {} 65535 65535\r\n", all, all)) ==
        fmt::format("[{}]:65535", all));
  // A proxy that is only connected to by IPv6 has IPv4 clients all the same.
  CHECK(address_of("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n") == "192.0.2.1:1");
}

TEST_CASE("UNKNOWN in version 1 keeps the address of the connection") {
  CHECK(address_of("PROXY UNKNOWN\r\n") == "");
  const std::string all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const std::string longest = fmt::format("PROXY UNKNOWN {} {} 65535 65535\r\n", all, all);
  CHECK(longest.size() == kMaxProxyLine);
  CHECK(address_of(longest) == "");
  CHECK(address_of("PROXY UNKNOWN  any \x01 bytes \r\n") == "");
}

TEST_CASE("a line of version 1 that differs in one point is refused") {
  for (const char* line : {"PROXY  TCP4 1.1.1.1 2.2.2.2 1 2",
                           "PROXY TCP4  1.1.1.1 2.2.2.2 1 2",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 ",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1 ",
                           "PROXY TCP4 1.1.1.1 2.2.2.2",
                           "PROXY TCP4",
                           "PROXY ",
                           "PROXY TCP4 ",
                           "PROXY TCP4 1.1.1 2.2.2.2 1 2",
                           "PROXY TCP4 01.1.1.1 2.2.2.2 1 2",
                           "PROXY TCP4 1.1.1.256 2.2.2.2 1 2",
                           "PROXY TCP4 1.1.1.1 2.2.2 1 2",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 01 2",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1 02",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 65536 2",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 -1 2",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 1 65536",
                           "PROXY TCP4 1.1.1.1 2.2.2.2 x 2",
                           "PROXY TCP4 ::1 ::1 1 2",
                           "PROXY TCP6 1.1.1.1 2.2.2.2 1 2",
                           "PROXY TCP6 [::1] ::1 1 2",
                           "PROXY TCP6 ::1%lo ::1 1 2",
                           "PROXY TCP6 12345::1 ::1 1 2",
                           "PROXY tcp4 1.1.1.1 2.2.2.2 1 2",
                           "PROXY UDP4 1.1.1.1 2.2.2.2 1 2",
                           "PROXY UNKNOWNS",
                           "PROXY unknown"}) {
    CAPTURE(line);
    CHECK(error_of(line + "\r\n"s) == "malformed PROXY line");
    CHECK(error_of(line) == "incomplete");
  }
}

TEST_CASE("a line of version 1 ends with CR LF, within 107 bytes") {
  const std::string line = "PROXY TCP4 1.1.1.1 2.2.2.2 1 2";
  for (const char* end : {"\n", "\r\r\n", "\rx", "\r "}) {
    CAPTURE(end);
    CHECK(error_of(line + end) == "the PROXY line does not end with CR LF");
  }
  CHECK(error_of(line + "\r") == "incomplete");
  const std::string start = "PROXY UNKNOWN ";
  const std::string full = start + std::string(kMaxProxyLine - start.size(), 'x');
  CHECK(error_of(full.substr(0, kMaxProxyLine - 1)) == "incomplete");
  for (const std::string& too_long :
       {full, full + "\r\n", full.substr(0, kMaxProxyLine - 1) + "\r",
        full.substr(0, kMaxProxyLine - 1) + "\r\n", full.substr(0, kMaxProxyLine - 1) + "\rx"}) {
    CHECK(error_of(too_long) == "a PROXY line of more than 107 bytes");
  }
  CHECK(error_of(full.substr(0, kMaxProxyLine - 2) + "\r\n") == "a header");
}

TEST_CASE("bytes that begin no header are refused at the first wrong byte") {
  for (const std::string& text :
       {"s"s, "stats\r\n"s, "put 0 0 60 1\r\n"s, "PUT /"s, "PROXX"s, "proxy "s, "PROXY\r\n"s,
        "\x16\x03\x01"s, "\n"s, "\r\r"s, "\r\n\r\n\0\r\nQUIR"s, "\r\n\r\nstats"s}) {
    CAPTURE(text);
    CHECK(error_of(text) == "no PROXY header");
  }
  for (const std::string& text : {""s, "P"s, "PROXY"s, "\r"s, "\r\n\r\n\0\r\nQUI"s, kSignature})
    CHECK(error_of(text) == "incomplete");
  for (const std::uint8_t version : std::to_array<std::uint8_t>({0x00, 0x11, 0x30, 0xf1})) {
    CHECK(error_of(kSignature + static_cast<char>(version)) ==
          "unknown version of the PROXY protocol");
  }
}

TEST_CASE("the addresses of version 2 name the client") {
  CHECK(address_of(ipv4("")) == "192.0.2.1:50312");
  const std::string v6 = "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"s;
  CHECK(address_of(binary(1, 0x21, v6 + v6 + big_endian(50312, 2) + big_endian(11300, 2))) ==
        "[2001:db8::1]:50312");
  const std::string mapped = std::string(10, '\0') + "\xff\xff\xc0\x00\x02\x01"s;
  CHECK(address_of(binary(1, 0x21, mapped + mapped + big_endian(1, 2) + big_endian(2, 2))) ==
        "192.0.2.1:1");
}

TEST_CASE("the path of version 2 names the client of a unix socket") {
  const auto source = [](const std::string& text) {
    return address_of(binary(1, 0x31, path(text) + path("/run/balancer.sock")));
  };
  CHECK(source("/run/client.sock") == "unix:/run/client.sock");
  CHECK(source(std::string(108, 'a')) == "unix:" + std::string(108, 'a'));
  CHECK(source("\0abstract"s) == "unix:@abstract");
  CHECK(source("") == "unix");
  CHECK(source("\0"s) == "unix");
  // Would need quotes in list-clients.
  for (const char* text : {"/a b", "/a:", "/a#b", "/\x01", "/\xc3\xaf", "/a\n"}) {
    CAPTURE(text);
    CHECK(source(text) == "unix");
  }
}

TEST_CASE("LOCAL and unspecified addresses in version 2 keep the address of the connection") {
  CHECK(address_of(binary(0, 0x00, "")) == "");
  // The block of LOCAL is not looked at.
  CHECK(address_of(binary(0, 0x11, kIpv4)) == "");
  CHECK(address_of(binary(0, 0xff, "anything")) == "");
  CHECK(address_of(binary(1, 0x00, "")) == "");
  CHECK(address_of(binary(1, 0x00, tls(7, 0, name("ada")))) == "");
  for (const std::uint8_t family :
       std::to_array<std::uint8_t>({0x01, 0x02, 0x10, 0x12, 0x20, 0x22, 0x30, 0x32})) {
    CAPTURE(family);
    CHECK(address_of(binary(1, family, "anything")) == "");
  }
}

TEST_CASE("undefined commands, families and protocols of version 2 are refused") {
  for (const std::uint8_t command : std::to_array<std::uint8_t>({2, 3, 15}))
    CHECK(error_of(binary(command, 0x11, kIpv4)) == "unknown PROXY command");
  for (const std::uint8_t family :
       std::to_array<std::uint8_t>({0x03, 0x13, 0x1f, 0x40, 0x41, 0xf1}))
    CHECK(error_of(binary(1, family, kIpv4)) == "unknown family or protocol in the PROXY header");
}

TEST_CASE("addresses that do not fit into a header of version 2 are refused") {
  constexpr std::string_view kReason = "the PROXY header is too short for its addresses";
  CHECK(error_of(binary(1, 0x11, "")) == kReason);
  CHECK(error_of(binary(1, 0x11, kIpv4.substr(1))) == kReason);
  CHECK(error_of(binary(1, 0x21, std::string(35, '\0'))) == kReason);
  CHECK(error_of(binary(1, 0x31, std::string(215, '\0'))) == kReason);
  CHECK(error_of(binary(1, 0x31, std::string(216, '\0'))) == "a header");
}

TEST_CASE("a header of version 2 has at most 4 KiB after its fixed part") {
  const std::string padding = field(0x04, std::string(4096 - kIpv4.size() - 3, '\0'));
  CHECK(ipv4(padding).size() == kMaxProxyHeader);
  CHECK(address_of(ipv4(padding)) == "192.0.2.1:50312");
  const std::string longer = ipv4(padding + field(0x04, ""));
  CHECK(error_of(longer) == "a PROXY header of more than 4112 bytes");
  // Its length is enough to know it.
  CHECK(error_of(longer.substr(0, 16)) == "a PROXY header of more than 4112 bytes");
  CHECK(error_of(longer.substr(0, 15)) == "incomplete");
}

TEST_CASE("a verified certificate gives a name") {
  const std::string version = field(0x21, "TLSv1.3");
  const std::string cipher = field(0x23, "TLS_AES_256_GCM_SHA384");
  CHECK(name_of(ipv4(tls(0x07, 0, version + name("worker 1") + cipher))) == "worker 1");
  CHECK(name_of(ipv4(tls(0x03, 0, name("by its connection")))) == "by its connection");
  CHECK(name_of(ipv4(tls(0x05, 0, name("by its session")))) == "by its session");
  CHECK(name_of(ipv4(field(0x01, "beanstalk") + tls(0x07, 0, name("ada")) + field(0xea, "x"))) ==
        "ada");
  CHECK(name_of(ipv4(tls(0x07, 0, name("first") + name("second")))) == "first");
  CHECK(name_of(ipv4(tls(0x07, 0, name("first")) + tls(0x07, 0, name("second")))) == "first");
  CHECK(name_of(ipv4(tls(0x07, 0, name(std::string(256, 'n'))))) == std::string(256, 'n'));
  CHECK(name_of(ipv4(tls(0x07, 0, name("J\xc3\xb6rg")))) == "J\xc3\xb6rg");
}

TEST_CASE("what is no name of a verified certificate is not shown") {
  for (const std::string& fields :
       {tls(0x07, 1, name("not verified")), tls(0x07, 0x01000000, name("not verified")),
        tls(0x01, 0, name("without a certificate")), tls(0x06, 0, name("without TLS")),
        tls(0x07, 0, ""), tls(0x07, 0, name("")), tls(0x07, 0, name(std::string(257, 'n'))),
        tls(0x07, 0, name("two\nlines")), tls(0x07, 0, name("\x7f")), tls(0x07, 0, name("\xff")),
        name("not within the field for TLS"), field(0x02, "queue.example"), ""s}) {
    CHECK(name_of(ipv4(fields)) == "");
  }
}

TEST_CASE("fields that exceed the header are refused") {
  constexpr std::string_view kReason = "malformed field in the PROXY header";
  for (const std::string& fields :
       {"\x04"s, "\x04\x00"s, "\x04\x00\x01"s, field(0x04, "abc") + "\x04"s,
        "\x04\xff\xff"s + "abc", field(0x20, ""), field(0x20, "\x01\0\0\0"s), tls(0x07, 0, "\x22"),
        tls(0x07, 0, "\x22\x00\x04"s + "ada"), tls(0x01, 1, name("ada") + "\x21\x00"s)}) {
    CHECK(error_of(ipv4(fields)) == kReason);
  }
}

TEST_CASE("a checksum is verified") {
  const auto with_checksum = [](std::uint32_t change) {
    const std::string before = tls(0x07, 0, name("ada"));
    const std::string after = field(0x04, "after");
    const std::string zeros = ipv4(before + field(0x03, std::string(4, '\0')) + after);
    return ipv4(before + field(0x03, big_endian(crc32c(0, zeros) ^ change, 4)) + after);
  };
  CHECK(name_of(with_checksum(0)) == "ada");
  CHECK(error_of(with_checksum(1)) == "wrong checksum of the PROXY header");
  std::string damaged = with_checksum(0);
  damaged[16] = static_cast<char>(damaged[16] ^ 1);
  CHECK(error_of(damaged) == "wrong checksum of the PROXY header");
  CHECK(error_of(ipv4(field(0x03, "abc"))) == "wrong checksum of the PROXY header");
}

TEST_CASE("a header that HAProxy 2.6 has sent") {
  // send-proxy-v2-ssl-cn proxy-v2-options crc32c,ssl,cert-cn,ssl-cipher,cert-key,cert-sig
  constexpr std::string_view kHex =
      "7f0000017f000001b618aa61030004ffc0882520004c0700000000210007544c5376312e332200057765"
      "622031250005454332353624001165636473612d776974682d534841323536230016544c535f4145535f"
      "3235365f47434d5f534841333834";
  std::string rest;
  for (std::size_t i = 0; i < kHex.size(); i += 2)
    rest += static_cast<char>(std::stoi(std::string(kHex.substr(i, 2)), nullptr, 16));
  const ProxiedClient client = client_of(binary(1, 0x11, rest));
  CHECK(client.address == "127.0.0.1:46616");
  CHECK(client.tls_name == "web 1");
}

}  // namespace tubed::loop_test
