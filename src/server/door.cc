#include "server/door.h"

#include <fmt/format.h>

namespace tubed::server {

const char* socket_unit(const Listen& wanted) {
  return wanted.kind == Listen::Kind::unix_socket ? kLocalUnit : kTcpUnit;
}

Result<platform::Socket> open_door(const Listen& wanted, std::uint32_t backlog, const char* unit) {
  const int length = static_cast<int>(backlog);
  // Of a service whose sockets come from systemd.
  const bool confined = !platform::may_open_tcp();
  if (wanted.kind == Listen::Kind::unix_socket) {
    auto opened = platform::listen_unix(wanted.path, {wanted.mode, wanted.group}, length);
    if (opened || !confined) return opened;
    return Error{fmt::format("{}; systemd has not passed it on: see systemctl status {}",
                             opened.error().message, unit)};
  }
  if (!confined) return platform::listen_tcp(wanted.host, wanted.port, length);
  return Error{fmt::format(
      "{} is not among the sockets that systemd has passed on, and the service may open none "
      "itself: see systemctl status {}",
      to_string(wanted), unit)};
}

void tell_door(platform::Log& log, std::string_view event, const platform::Socket& socket,
               const std::string& inherited) {
  const std::string address = platform::local_address(socket);
  if (inherited.empty()) {
    log.info(event, {{"address", address}});
  } else {
    log.info(event, {{"address", address}, {"inherited", inherited}});
  }
}

void tell_replaced(platform::Log& log, const Listen& wanted, const char* unit) {
  log.warning("configured listener replaced by inherited sockets",
              {{"address", to_string(wanted)}, {"to_change", edit_command(unit)}});
}

std::string edit_command(const char* unit) {
  return fmt::format("systemctl edit {}", unit);
}

}  // namespace tubed::server
