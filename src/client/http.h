// HTTP: one request over HTTP/1.1 on a connected socket, and its answer.
//
// The client blocks and knows the answers of tubed, not all of HTTP. A connection serves one
// request ("Connection: close"). The answer is bounded in bytes and in time; only its status and
// its Content-Length are interpreted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/descriptor.h"

namespace tubed::client {

struct HttpRequest {
  std::string_view method = "GET";
  std::string_view path = "/";  // of letters, digits, "/" and "-"
  std::string json = {};        // the body; empty: none
};

struct HttpLimits {
  Duration timeout;                      // for the whole exchange
  std::size_t head_bytes = 16 * 1024;    // of the answer's head
  std::size_t body_bytes = 1024 * 1024;  // of its body
};

struct HttpAnswer {
  int status = 0;    // 100 to 999
  std::string body;  // its bytes: nothing is checked or converted
};

// The Error of a server that closed the connection before the end of its answer.
inline constexpr std::string_view kHttpClosed =
    "the server closed the connection before its answer";

// Sends the request on `connection`, which may be blocking, reads the answer and closes. Fails if
// the answer is incomplete; the server may have received the request nevertheless.
Result<HttpAnswer> exchange_http(os::Descriptor connection, const HttpRequest& request,
                                 const HttpLimits& limits);

}  // namespace tubed::client
