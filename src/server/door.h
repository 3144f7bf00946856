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

// The units of the packages, for advice. Others may have passed sockets on as well.
inline constexpr const char* kTcpUnit = "tubed.socket";
inline constexpr const char* kLocalUnit = "tubed-local.socket";
inline constexpr const char* kHttpUnit = "tubed-http.socket";
inline constexpr const char* kEnableHttp = "systemctl enable tubed-http.socket";
// Of clients: the one whose socket takes the place of such a listener.
const char* socket_unit(const Listen& wanted);

// `backlog`: connections that the kernel queues. `unit`: what an operator is to look at where the
// service may open no socket. The error is one line that names the address.
Result<platform::Socket> open_door(const Listen& wanted, std::uint32_t backlog, const char* unit);

// `event` is a literal; `inherited`: the name that the socket was passed on with, or empty.
void tell_door(platform::Log& log, std::string_view event, const platform::Socket& socket,
               const std::string& inherited);

// The settings have an address that was not opened, for sockets were passed on.
void tell_replaced(platform::Log& log, const Listen& wanted, const char* unit);

// How an operator changes the address of an inherited socket.
std::string edit_command(const char* unit);

}  // namespace tubed::server
