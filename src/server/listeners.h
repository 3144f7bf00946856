// Listeners: the listening sockets of a server, whatever is spoken on them.
//
// A socket that the service manager has passed on takes the place of the configured listeners of
// its kind: TCP or unix of clients, or HTTP. Inherited sockets are told apart by name and family.
// What is opened here for each kind is decided in one place, open_listeners().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "os/log.h"
#include "os/service_manager.h"
#include "os/socket.h"

namespace tubed::server {

// What is spoken on the connections of a listener.
enum class Protocol : std::uint8_t { beanstalk, http };

// Where a connection comes from.
struct ListenerInfo {
  Protocol protocol = Protocol::beanstalk;
  std::string inherited;  // the name with which the socket was passed on; empty: it was opened here
};

struct OpenListener {
  os::Socket socket;
  std::string path;  // of a unix socket that was opened here, to be removed with it; else empty
  ListenerInfo info;
};

// The units of the packages, for advice. Others may have passed sockets on as well.
inline constexpr const char* kTcpUnit = "tubed.socket";
inline constexpr const char* kHttpUnit = "tubed-http.socket";
inline constexpr const char* kEnableHttp = "systemctl enable tubed-http.socket";

// The inherited sockets, and for each configured listener whose kind was not passed on a socket
// that is opened: HTTP first, then those of clients in the order of the settings. Logs each, and
// configured listeners that are replaced. The error is one line that names the address; sockets
// that were opened before it are closed.
Result<std::vector<OpenListener>> open_listeners(os::Log& log, const Settings& settings,
                                                 std::vector<os::InheritedSocket> inherited);

// How an operator changes the address of an inherited socket.
std::string edit_command(const char* unit);

}  // namespace tubed::server
