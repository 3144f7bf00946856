// Framing of requests: whether all readers agree on the header of a request.
//
// A proxy and this server must not disagree about where a request ends or which host it is for.
// Therefore everything is refused that RFC 9112 calls invalid or leaves to the reader: bytes that
// header texts may not contain, lines that end with LF alone or are folded, a second Host, and a
// body of unclear length.
#pragma once

#include <optional>
#include <string_view>

#include "loop/http_exchange.h"
#include "loop/http_request.h"

struct MHD_Connection;

namespace tubed::loop {

// Returns the refusal (400, 501), or nothing if the framing is clear. `method` and `version` are
// the arguments of libmicrohttpd's access handler, called with the header of `request`. O(header).
std::optional<HttpResponse> refuse_framing(const HttpRequest& request, MHD_Connection* connection,
                                           const char* method, const char* version);

}  // namespace tubed::loop
