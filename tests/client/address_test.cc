#include "client/address.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "client/connection.h"

namespace tubed::client {

TEST_CASE("addresses are parsed, and written in the same form") {
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
  CHECK(shown("unix:@tubed") == "unix:@tubed");
  CHECK(shown("/run/tubed.sock") == "unix:/run/tubed.sock");
  CHECK(shown("beanstalk://10.1.2.3") == "10.1.2.3:11300");
  CHECK(shown("beanstalk://[::1]:5") == "[::1]:5");
  CHECK(shown("beanstalks://queue.example.org:7") == "beanstalks://queue.example.org:7");
  CHECK(shown("beanstalks://10.1.2.3") == "beanstalks://10.1.2.3:11300");
  CHECK(shown("beanstalks://[::1]") == "beanstalks://[::1]:11300");
  CHECK(shown("/" + std::string(106, 'x')) == "unix:/" + std::string(106, 'x'));
}

TEST_CASE("several addresses are separated by commas") {
  const auto shown = [](std::string_view text) {
    return to_string(Target{.addresses = parse_addresses(text).value()});
  };
  CHECK(shown("10.1.2.3") == "10.1.2.3:11300");
  CHECK(shown("a:1,[::1]:2,10.1.2.3") == "a:1,[::1]:2,10.1.2.3:11300");
  CHECK(shown("beanstalks://a,beanstalks://b:7") == "beanstalks://a:11300,beanstalks://b:7");
  // Also where addresses had commas before several were allowed.
  CHECK(shown("/tmp/a,b") == "unix:/tmp/a,b");
  CHECK(shown("unix:a,b") == "unix:a,b");
  const auto refused = [](std::string_view text) { return parse_addresses(text).error().message; };
  CHECK(refused("a,") == "\"\" is neither an address nor a host's name");
  CHECK(refused(",a") == "\"\" is neither an address nor a host's name");
  CHECK(refused("a, b") == "\" b\" is neither an address nor a host's name");
  CHECK(refused("a,unix:/b") == "the address of a unix socket stands alone");
  CHECK(refused("a,beanstalks://b") ==
        "\"a,beanstalks://b\": either all addresses have TLS or none has");
}

TEST_CASE("a certificate must be valid for the host as it was written") {
  CHECK(host_name(parse_address("beanstalks://localhost:1").value()) == "localhost");
  CHECK(host_name(parse_address("localhost").value()) == "localhost");
  CHECK(host_name(parse_address("127.0.0.1").value()) == "127.0.0.1");
  CHECK(host_name(parse_address("[::1]:1").value()) == "::1");
  CHECK_FALSE(parse_address("beanstalk://localhost")->tls);
  CHECK(parse_address("beanstalks://localhost")->tls);
}

TEST_CASE("an invalid address is refused") {
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
                                 "unix:",
                                 "beanstalk://",
                                 "beanstalks://:1",
                                 "beanstalks:///run/tubed.sock",
                                 "beanstalks://unix:/run/tubed.sock",
                                 "beanstalks://queue/",
                                 "beanstalks://queue:1/tube",
                                 "beanstalks://queue?x",
                                 "beanstalks://user@queue",
                                 "beanstalks://::1",
                                 "tls://queue",
                                 "BEANSTALK://queue"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_address(text));
  }
  CHECK_FALSE(parse_address("/" + std::string(107, 'x')));
}

}  // namespace tubed::client
