// inet_pton(3) and inet_ntop(3) of the C library are the oracle.
#include "text/host.h"

#include <array>
#include <string>

#include <arpa/inet.h>
#include <doctest/doctest.h>

namespace tubed::text_test {
namespace {

// Its spelling and its bytes; nothing: it is refused.
std::string by_libc(HostFamily family, std::string_view host) {
  const int number = family == HostFamily::ipv4 ? AF_INET : AF_INET6;
  const std::size_t bytes = family == HostFamily::ipv4 ? 4 : 16;
  std::array<char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> spelling{};
  if (inet_pton(number, std::string(host).c_str(), address.data()) != 1) return "";
  return inet_ntop(number, address.data(), spelling.data(), spelling.size()) +
         std::string(address.data(), bytes);
}

std::string by_text(HostFamily family, std::string_view host) {
  const auto read = parse_host(family, host);
  if (!read) return "";
  const std::size_t bytes = family == HostFamily::ipv4 ? 4 : 16;
  return to_string(*read) + std::string(read->bytes.end() - bytes, read->bytes.end());
}

TEST_CASE("hosts are read and written as inet_pton and inet_ntop do it") {
  const auto check = [](std::string_view host) {
    CAPTURE(host);
    CHECK(by_text(HostFamily::ipv4, host) == by_libc(HostFamily::ipv4, host));
    CHECK(by_text(HostFamily::ipv6, host) == by_libc(HostFamily::ipv6, host));
  };
  for (const char* host : {"0.0.0.0",
                           "255.255.255.255",
                           "256.1.1.1",
                           "1.1.1",
                           "1.1.1.1.1",
                           "01.1.1.1",
                           "1..1.1",
                           "1.1.1.1.",
                           ".1.1.1.1",
                           "0x1.1.1.1",
                           "::",
                           ":::",
                           "::1",
                           "1::",
                           ":1",
                           "1:",
                           "1:2:3:4:5:6:7:8",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7::",
                           "::2:3:4:5:6:7:8",
                           "1:2:3:4::5:6:7:8",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "1::2::3",
                           "00001::",
                           "g::",
                           "::ffff:1.2.3.4",
                           "::1.2.3.4",
                           "1:2:3:4:5:6:1.2.3.4",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "1.2.3.4::",
                           "::1.2.3.4:1",
                           "::1.2.3",
                           "::1:2",
                           "::ffff:0:1",
                           "0:0:1:0:0:0:1:0",
                           "1:0:0:2:0:0:3:4",
                           "1:0:2:3:4:5:6:7",
                           "fe80::1%lo",
                           "::FFFF:0:0",
                           "0:0:0:0:0:fffe:1:2",
                           "1:2:3:4:5:6:0:0",
                           "0::0",
                           "1:2::3:1.2.3.4"})
    check(host);
  // Every text of up to six of these characters.
  const std::string_view characters = "1:.0";
  for (std::size_t length = 1; length <= 6; ++length) {
    std::string text(length, characters[0]);
    for (std::size_t number = 0; number < (std::size_t{1} << (2 * length)); ++number) {
      for (std::size_t i = 0; i < length; ++i) text[i] = characters[number >> (2 * i) & 3U];
      for (const HostFamily family : {HostFamily::ipv4, HostFamily::ipv6}) {
        if (by_text(family, text) != by_libc(family, text)) check(text);
      }
    }
  }
  // Every set of groups that are zero.
  for (unsigned zeros = 0; zeros < 256; ++zeros) {
    std::string text;
    for (unsigned i = 0; i < 8; ++i) {
      text += i == 0 ? "" : ":";
      text += (zeros >> i & 1U) != 0 ? "0" : "a" + std::to_string(i);
    }
    check(text);
  }
}

TEST_CASE("a host of either family") {
  CHECK(parse_host("10.1.2.3")->family == HostFamily::ipv4);
  CHECK(parse_host("::1")->family == HostFamily::ipv6);
  CHECK_FALSE(parse_host("localhost"));
  CHECK_FALSE(parse_host("[::1]"));
  CHECK_FALSE(parse_host(std::string_view("::1\0", 4)));
  CHECK_FALSE(parse_host(std::string_view("1.2.3.4\0", 8)));
  CHECK_FALSE(parse_host(""));
}

TEST_CASE("the name of a host is in lower case, without a dot at its end") {
  CHECK(parse_host_name("a") == "a");
  CHECK(parse_host_name("Tubed-0.Tubed.Default.SVC.cluster.LOCAL.") ==
        "tubed-0.tubed.default.svc.cluster.local");
  CHECK(parse_host_name("1a.2-b.c3") == "1a.2-b.c3");
  CHECK(parse_host_name("10.0.0.x") == "10.0.0.x");
  CHECK(parse_host_name("xn--a.b") == "xn--a.b");
  const std::string label(63, 'a');
  CHECK(parse_host_name(label) == label);
  CHECK_FALSE(parse_host_name(label + "a"));
  CHECK_FALSE(parse_host_name("b." + label + "a.c"));
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  CHECK(parse_host_name(longest) == longest);
  CHECK(parse_host_name(longest + ".") == longest);
  CHECK_FALSE(parse_host_name(longest + "b"));
  for (const char* text :
       {"",     ".",       "..",     "a..",     ".a",    "a..b", "-a",         "a-",
        "a.-b", "a-.b",    "a_b",    "a b",     " a",    "a ",   "a:1",        "a/b",
        "a@b",  "[a]",     "::1",    "1.2.3.4", "1.2.3", "1",    "10.0.0.300", "a.1",
        "a.1.", "a.b.007", "a.0x7f", "0x",      "0X1",   "a.Ã¤", "*",          "a.*"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_host_name(text));
  }
  CHECK_FALSE(parse_host_name(std::string_view("a\0b", 3)));
}

TEST_CASE("IPv6 maps an IPv4 address") {
  CHECK(parse_host("1.2.3.4")->bytes == parse_host("::ffff:1.2.3.4")->bytes);
  CHECK(to_string(*parse_host("::ffff:1.2.3.4")) == "::ffff:1.2.3.4");
}

}  // namespace
}  // namespace tubed::text_test
