#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "platform/supervisor.h"

namespace tubed::platform_test {

TEST_CASE("a build without systemd tells nobody, and knows no unit") {
  ::setenv("NOTIFY_SOCKET", "/nobody/is/there", 1);
  ::setenv("WATCHDOG_USEC", "400000", 1);
  CHECK_FALSE(platform::has_supervisor());
  CHECK(platform::watchdog_interval() == Duration::zero());
  CHECK_FALSE(platform::main_process_of("tubed.service").ok());
  CHECK_FALSE(platform::unit_state("tubed.service").ok());
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
}

TEST_CASE("a build without systemd does not pass over sockets that it cannot take") {
  auto none = platform::inherited_sockets();
  REQUIRE(none.ok());
  CHECK(none->empty());
  ::setenv("LISTEN_FDS", "2", 1);
  ::setenv("LISTEN_PID", "1", 1);
  CHECK(platform::inherited_sockets().ok());  // they are for another process
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  const auto some = platform::inherited_sockets();
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_PID");
  REQUIRE_FALSE(some.ok());
  CHECK(some.error().message.find("built without systemd") != std::string::npos);
}

}  // namespace tubed::platform_test
