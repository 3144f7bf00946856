#include "config/listen.h"

#include <doctest/doctest.h>

namespace tubed {
namespace {

std::string read(std::string_view address, std::uint16_t port = kDefaultPort) {
  const auto listen = parse_listen(address, port);
  return listen ? to_string(listen.value()) : "error: " + listen.error().message;
}

TEST_CASE("addresses are numeric, with or without a port, or paths") {
  CHECK(read("127.0.0.1:11300") == "127.0.0.1:11300");
  CHECK(read("127.0.0.1") == "127.0.0.1:11300");
  CHECK(read("127.0.0.1", 99) == "127.0.0.1:99");
  CHECK(read("127.0.0.1:7", 99) == "127.0.0.1:7");
  CHECK(read("0.0.0.0:0") == "0.0.0.0:0");
  CHECK(read("[::1]:11300") == "[::1]:11300");
  CHECK(read("[::1]") == "[::1]:11300");
  CHECK(read("::1") == "[::1]:11300");
  CHECK(read("::") == "[::]:11300");
  CHECK(read("[0:0:0:0:0:0:0:1]:80") == "[::1]:80");
  CHECK(read("unix:/run/tubed/tubed.sock") == "unix:/run/tubed/tubed.sock");
  CHECK(read("unix:a b") == "unix:a b");
}

TEST_CASE("a bad address is refused with the reason") {
  CHECK(read("localhost:11300") ==
        "error: \"localhost\" is not a numeric address; names are not resolved: write 127.0.0.1 or "
        "[::1]");
  CHECK(read("127.0.0.1:65536") == "error: \"65536\" is not a port from 0 to 65535");
  CHECK(read("unix:") == "error: unix: has no path after it");
  for (const auto* address :
       {"", ":11300", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:1x", "127.0.0.1: 1", "127.1", "1",
        "[::1", "[::1]11300", "[::1]:", "[]:1", "[127.0.0.1]:1", "::1:11300", "256.0.0.1",
        "unix:a\nb", "tcp:127.0.0.1:1", "127.0.0.1:1:2"}) {
    CAPTURE(address);
    CHECK_FALSE(parse_listen(address).ok());
  }
  CHECK_FALSE(parse_listen(std::string_view("::1\0x", 5)).ok());
}

TEST_CASE("the path of a unix socket must fit into its address") {
  CHECK(parse_listen("unix:/" + std::string(106, 'x')).ok());
  CHECK_FALSE(parse_listen("unix:/" + std::string(107, 'x')).ok());
}

TEST_CASE("two listeners clash if both cannot be opened") {
  const auto both = [](std::string_view one, std::string_view other) {
    return clash(parse_listen(one).value(), parse_listen(other).value());
  };
  CHECK(both("::1", "[0:0:0:0:0:0:0:1]:11300"));
  CHECK(both("127.0.0.1", "127.0.0.1:11300"));
  CHECK_FALSE(both("127.0.0.1:1", "127.0.0.1:2"));
  CHECK_FALSE(both("127.0.0.1:0", "127.0.0.1:0"));
  CHECK_FALSE(both("127.0.0.1", "127.0.0.2"));
  CHECK(both("unix:/a", "unix:/a"));
  CHECK_FALSE(both("unix:/a", "unix:/b"));
  CHECK_FALSE(both("unix:/a", "127.0.0.1"));
}

}  // namespace
}  // namespace tubed
