#include "server/door.h"

namespace tubed::server {

Result<platform::Socket> open_door(const Listen& wanted, std::uint32_t backlog) {
  const int length = static_cast<int>(backlog);
  return wanted.kind == Listen::Kind::unix_socket
             ? platform::listen_unix(wanted.path, {wanted.mode, wanted.group}, length)
             : platform::listen_tcp(wanted.host, wanted.port, length);
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

void tell_replaced(platform::Log& log, const Listen& wanted) {
  log.warning("configured listener replaced by inherited sockets",
              {{"address", to_string(wanted)}});
}

}  // namespace tubed::server
