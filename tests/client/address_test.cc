#include "client/address.h"

#include <string>

#include <doctest/doctest.h>

namespace tubed::client {

TEST_CASE("addresses are read, and written as they are read") {
  const auto shown = [](std::string_view text) { return to_string(parse_address(text).value()); };
  CHECK(shown("127.0.0.1:11301") == "127.0.0.1:11301");
  CHECK(shown("10.1.2.3") == "10.1.2.3:11300");
  CHECK(shown("localhost:1") == "127.0.0.1:1");
  CHECK(shown("localhost") == "127.0.0.1:11300");
  CHECK(shown("queue.example.org") == "queue.example.org:11300");
  CHECK(shown("queue-1:7") == "queue-1:7");
  CHECK(shown("[::1]:65535") == "[::1]:65535");
  CHECK(shown("[fe80::1]") == "[fe80::1]:11300");
  CHECK(shown("unix:/run/tubed.sock") == "unix:/run/tubed.sock");
  CHECK(shown("unix:here") == "unix:here");
  CHECK(shown("/run/tubed.sock") == "unix:/run/tubed.sock");
  CHECK(shown("/" + std::string(106, 'x')) == "unix:/" + std::string(106, 'x'));
}

TEST_CASE("what is no address is refused") {
  for (const char* const text : {"",
                                 ":",
                                 ":11300",
                                 "exam ple.org:11300",
                                 "127.0.0.1:",
                                 "1.2.3.4.5",
                                 "127.0.0.1:0",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:-1",
                                 "127.0.0.1:+1",
                                 "127.0.0.1: 1",
                                 "127.0.0.1:1x",
                                 "127.0.0:1",
                                 "::1",
                                 "::1:11300",
                                 "[::1",
                                 "[::1]11300",
                                 "[::1]:",
                                 "[127.0.0.1]:1",
                                 "[localhost]:1",
                                 "[]:1",
                                 "unix:"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_address(text));
  }
  CHECK_FALSE(parse_address("/" + std::string(107, 'x')));
}

}  // namespace tubed::client
