#include "text/network.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tubed::text_test {
namespace {

// The network as text, or the reason why it is none.
std::string read(std::string_view text) {
  const auto network = parse_network(text);
  CHECK(network_mistake(text).empty() == network.has_value());
  if (!network) return network_mistake(text);
  return fmt::format("{}/{}", to_string(network->address), network->prefix);
}

bool has(std::string_view network, std::string_view host) {
  return contains(*parse_network(network), *parse_host(host));
}

}  // namespace

TEST_CASE("networks are read, and an address is a network of its own") {
  CHECK(read("10.0.0.0/8") == "10.0.0.0/8");
  CHECK(read("0.0.0.0/0") == "0.0.0.0/0");
  CHECK(read("192.0.2.7") == "192.0.2.7/32");
  CHECK(read("192.0.2.6/31") == "192.0.2.6/31");
  CHECK(read("fd00::/8") == "fd00::/8");
  CHECK(read("::/0") == "::/0");
  CHECK(read("2001:DB8:0::1") == "2001:db8::1/128");
  CHECK(read("2001:db8::8/125") == "2001:db8::8/125");
}

TEST_CASE("what is no network has a reason") {
  for (const char* text : {"", "/", "/8", "10", "10.0.0/8", "10.0.0.0 /8", "unix", "proxy.example",
                           "[fd00::]/8", "10.0.0.0:80", "fe80::1%eth0"}) {
    CAPTURE(text);
    CHECK(read(text) == "is not a network such as 10.0.0.0/8 or fd00::/8");
  }
  for (const char* text : {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8 ", "10.0.0.0/8/8",
                           "10.0.0.0/255.0.0.0", "10.0.0.0/256"}) {
    CAPTURE(text);
    CHECK(read(text) == "has no prefix from 0 to 32");
  }
  CHECK(read("fd00::/129") == "has no prefix from 0 to 128");
  CHECK(read("10.1.0.0/8") == "has bits after its prefix; the network is 10.0.0.0/8");
  CHECK(read("192.0.2.7/31") == "has bits after its prefix; the network is 192.0.2.6/31");
  CHECK(read("0.0.0.1/0") == "has bits after its prefix; the network is 0.0.0.0/0");
  CHECK(read("fd00::1/64") == "has bits after its prefix; the network is fd00::/64");
  CHECK(read("::ffff:10.0.0.0/104") ==
        "is an IPv4 network in the notation of IPv6; write it as 10.0.0.0/8");
}

TEST_CASE("a network contains the hosts with its prefix, of its own family") {
  CHECK(has("10.0.0.0/8", "10.255.0.1"));
  CHECK_FALSE(has("10.0.0.0/8", "11.0.0.0"));
  CHECK_FALSE(has("10.0.0.0/8", "9.255.255.255"));
  CHECK(has("192.0.2.6/31", "192.0.2.7"));
  CHECK_FALSE(has("192.0.2.6/31", "192.0.2.8"));
  CHECK(has("192.0.2.7", "192.0.2.7"));
  CHECK_FALSE(has("192.0.2.7", "192.0.2.6"));
  CHECK(has("0.0.0.0/0", "255.255.255.255"));
  CHECK_FALSE(has("0.0.0.0/0", "::1"));
  CHECK(has("fd00::/8", "fdff::1"));
  CHECK_FALSE(has("fd00::/8", "fe00::"));
  CHECK(has("2001:db8::8/125", "2001:db8::f"));
  CHECK_FALSE(has("2001:db8::8/125", "2001:db8::10"));
  CHECK(has("::/0", "2001:db8::1"));
  CHECK_FALSE(has("::/0", "10.0.0.1"));
  // As a dual-stack socket reports an IPv4 peer.
  CHECK(has("10.0.0.0/8", "::ffff:10.0.0.1"));
  CHECK_FALSE(has("::/0", "::ffff:10.0.0.1"));
}

}  // namespace tubed::text_test
