#include "os/service_manager.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/loop/loopback.h"

namespace tubed::os_test {

using namespace loop_test;

using os::notify_status;
using os::Socket;

namespace {

// Listens as systemd does, for its lifetime.
class Supervisor {
 public:
  Supervisor() {
    const std::string path = directory_.file("notify");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) ==
            0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~Supervisor() { ::unsetenv("NOTIFY_SOCKET"); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The oldest message; empty: there is none.
  std::string hears() {
    std::array<char, 4096> buffer;
    const ssize_t bytes = ::recv(socket_.descriptor(), buffer.data(), buffer.size(), 0);
    return bytes > 0 ? std::string(buffer.data(), static_cast<std::size_t>(bytes)) : std::string();
  }

 private:
  Directory directory_;
  Socket socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("a supervisor hears the status, one message each time") {
  Supervisor supervisor;
  notify_status("reading the journal: 40 %");
  notify_status("ready");
  CHECK(supervisor.hears() == "STATUS=reading the journal: 40 %");
  CHECK(supervisor.hears() == "STATUS=ready");
  CHECK(supervisor.hears().empty());
}

TEST_CASE("a status is one line: nothing else is told with it") {
  Supervisor supervisor;
  notify_status("one\nREADY=1");
  CHECK(supervisor.hears() == "STATUS=one READY=1");
}

TEST_CASE("a supervisor hears of the start, its end, reloads and the stop") {
  Supervisor supervisor;
  CHECK(os::has_service_manager());
  os::notify_starting("recovering", std::chrono::seconds(30));
  CHECK(supervisor.hears() == "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=recovering");
  os::notify_ready("serving");
  CHECK(supervisor.hears() == "READY=1\nSTATUS=serving");
  os::notify_reloading();
  CHECK(supervisor.hears().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  os::notify_alive();
  CHECK(supervisor.hears() == "WATCHDOG=1");
  os::notify_stopping("stopping", std::chrono::seconds(15));
  CHECK(supervisor.hears() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\nSTATUS=stopping");
}

TEST_CASE("a watchdog is for the process that it names") {
  CHECK(os::watchdog_interval() == Duration::zero());
  ::setenv("WATCHDOG_USEC", "400000", 1);
  CHECK(os::watchdog_interval() == std::chrono::milliseconds(400));
  ::setenv("WATCHDOG_PID", "1", 1);
  CHECK(os::watchdog_interval() == Duration::zero());
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
}

TEST_CASE("without a supervisor a status is told to nobody") {
  ::unsetenv("NOTIFY_SOCKET");
  notify_status("ready");
  ::setenv("NOTIFY_SOCKET", "/nobody/is/there", 1);
  notify_status("ready");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace tubed::os_test
