// An exchange: one command, and a wait for its whole reply.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::tubectl {

struct Exchanged {
  std::string line;  // without CR LF
  std::string body;  // of OK <bytes>; else empty
};

// Sends `command`, a line without its end, on a socket that blocks and has no reply under way.
Result<Exchanged> ask(int descriptor, std::string_view command);

}  // namespace tubed::tubectl
