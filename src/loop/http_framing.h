// The framing of requests: whether the header of a request says the same to every reader.
//
// A proxy and this server must not disagree about where a request ends or which host it is for. So
// what RFC 9112 calls invalid, or lets each reader take as it likes, is refused: bytes that a text
// of a header may not have, lines that end with LF alone or are folded, a second Host, and a body
// whose length is not clear.
#pragma once

#include <optional>
#include <string_view>

#include "loop/http_exchange.h"
#include "loop/http_request.h"

struct MHD_Connection;

namespace tubed::loop {

// The refusal (400, 501); nothing: the framing is clear. `method` and `version`: as libmicrohttpd
// has passed them, with the header of `request`, to the access handler. O(header).
std::optional<HttpResponse> refuse_framing(const HttpRequest& request, MHD_Connection* connection,
                                           const char* method, const char* version);

}  // namespace tubed::loop
