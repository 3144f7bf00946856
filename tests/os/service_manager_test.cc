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

// Receives notifications in place of systemd.
class ServiceManager {
 public:
  ServiceManager() {
    const std::string path = directory_.file("notify");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) ==
            0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceManager() { ::unsetenv("NOTIFY_SOCKET"); }
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Takes the oldest message. Empty: no message has arrived.
  std::string next_message() {
    std::array<char, 4096> buffer;
    const ssize_t bytes = ::recv(socket_.descriptor(), buffer.data(), buffer.size(), 0);
    return bytes > 0 ? std::string(buffer.data(), static_cast<std::size_t>(bytes)) : std::string();
  }

 private:
  Directory directory_;
  Socket socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("each call sends the status in one message") {
  ServiceManager manager;
  notify_status("reading the journal: 40 %");
  notify_status("ready");
  CHECK(manager.next_message() == "STATUS=reading the journal: 40 %");
  CHECK(manager.next_message() == "STATUS=ready");
  CHECK(manager.next_message().empty());
}

TEST_CASE("a line feed in a status does not begin another message") {
  ServiceManager manager;
  notify_status("one\nREADY=1");
  CHECK(manager.next_message() == "STATUS=one READY=1");
}

TEST_CASE("the start, its end, reloads and the stop are sent") {
  ServiceManager manager;
  CHECK(os::has_service_manager());
  os::notify_starting("recovering", std::chrono::seconds(30));
  CHECK(manager.next_message() == "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=recovering");
  os::notify_ready("serving");
  CHECK(manager.next_message() == "READY=1\nSTATUS=serving");
  os::notify_reloading();
  CHECK(manager.next_message().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  os::notify_watchdog();
  CHECK(manager.next_message() == "WATCHDOG=1");
  os::notify_stopping("stopping", std::chrono::seconds(15));
  CHECK(manager.next_message() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\nSTATUS=stopping");
}

TEST_CASE("a watchdog applies to the process that it names") {
  CHECK(os::watchdog_interval() == Duration::zero());
  ::setenv("WATCHDOG_USEC", "400000", 1);
  CHECK(os::watchdog_interval() == std::chrono::milliseconds(400));
  ::setenv("WATCHDOG_PID", "1", 1);
  CHECK(os::watchdog_interval() == Duration::zero());
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
}

TEST_CASE("without a service manager a status is not sent") {
  ::unsetenv("NOTIFY_SOCKET");
  notify_status("ready");
  ::setenv("NOTIFY_SOCKET", "/not/there", 1);
  notify_status("ready");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace tubed::os_test
