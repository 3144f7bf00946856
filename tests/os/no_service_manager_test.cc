#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "os/service_manager.h"

namespace tubed::os_test {

TEST_CASE("a build without systemd sends no notifications and knows no units") {
  ::setenv("NOTIFY_SOCKET", "/not/there", 1);
  ::setenv("WATCHDOG_USEC", "400000", 1);
  CHECK_FALSE(os::has_service_manager());
  CHECK(os::watchdog_interval() == Duration::zero());
  CHECK_FALSE(os::main_process_of("tubed.service").ok());
  CHECK_FALSE(os::unit_state("tubed.service").ok());
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
}

TEST_CASE("a build without systemd refuses to start with inherited sockets") {
  auto none = os::inherited_sockets();
  REQUIRE(none.ok());
  CHECK(none->empty());
  ::setenv("LISTEN_FDS", "2", 1);
  ::setenv("LISTEN_PID", "1", 1);
  CHECK(os::inherited_sockets().ok());  // the sockets are for another process
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  const auto some = os::inherited_sockets();
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_PID");
  REQUIRE_FALSE(some.ok());
  CHECK(some.error().message.find("built without systemd") != std::string::npos);
}

}  // namespace tubed::os_test
