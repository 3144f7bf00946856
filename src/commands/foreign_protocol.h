// Recognizes HTTP and TLS on a listener of the beanstalk protocol. A web page can make a browser
// send a request to any port of its user's machine, and the lines of the request's body would be
// run as commands.
#pragma once

#include <string_view>

namespace tubed::commands {

// Returns true if `line` begins a request of HTTP ("POST /path HTTP/1.1"), is its header field
// Host, which every browser sends, or begins a handshake of TLS. `line` has no line end, and may be
// the beginning of a line that is too long. No command of the protocol has such a line: all are in
// lower case. O(line).
bool is_foreign_protocol(std::string_view line);

}  // namespace tubed::commands
