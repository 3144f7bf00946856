// HTTP: one request over HTTP/1.1 on a connected socket, and its answer.
//
// Blocking, for programs that ask once in a while. The request says "Connection: close", so a
// connection serves one request. The answer is bounded in bytes and in time; nothing in it is
// interpreted but its status and the extent of its body.
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
  std::size_t head_bytes = 16 * 1024;    // of all heads of the answer
  std::size_t body_bytes = 1024 * 1024;  // of its body, without the sizes of chunks
};

struct HttpAnswer {
  int status = 0;    // 200 to 999; informational answers are passed over
  std::string body;  // its bytes: nothing is checked or converted
};

// The Error of a server that closed the connection before the end of its answer.
inline constexpr std::string_view kHttpClosed =
    "the server closed the connection before its answer";

// Sends the request on `connection`, which may be blocking, reads the answer to its end and closes.
// The body ends where Content-Length says, with the last chunk, or with the connection. An Error:
// no whole answer came; the server may have received the request nevertheless.
Result<HttpAnswer> exchange_http(os::Descriptor connection, const HttpRequest& request,
                                 const HttpLimits& limits);

}  // namespace tubed::client
