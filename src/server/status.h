// The state of a server in words: for systemd, as its status, and for a health check.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "commands/service.h"
#include "server/lifecycle.h"

namespace tubed::server {

// One line for `systemctl status`. It begins with "drained" exactly if drain mode has stopped the
// server; packaging/systemd/close-sockets reads that word.
std::string status_line(const commands::Service& service, const Lifecycle& lifecycle,
                        std::size_t connections);

// Why the server accepts no new jobs, in a few words; empty: it accepts them. For want of memory
// alone it stays ready: the workers that make room come the same way as new jobs.
std::string_view unready_reason(const commands::Service& service, const Lifecycle& lifecycle);

}  // namespace tubed::server
