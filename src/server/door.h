// Door: a listening socket as the settings describe it, and what the log says of one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/listen.h"
#include "platform/log.h"
#include "platform/socket.h"

namespace tubed::server {

// `backlog`: connections that the kernel queues. The error is one line that names the address.
Result<platform::Socket> open_door(const Listen& wanted, std::uint32_t backlog);

// `event` is a literal; `inherited`: the name that the socket was passed on with, or empty.
void tell_door(platform::Log& log, std::string_view event, const platform::Socket& socket,
               const std::string& inherited);

// The settings have an address that was not opened, for sockets were passed on.
void tell_replaced(platform::Log& log, const Listen& wanted);

}  // namespace tubed::server
