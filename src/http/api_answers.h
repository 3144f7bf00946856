// Answers of the API as HTTP responses.
#pragma once

#include <string>

#include "api/frame.h"
#include "api/problem.h"
#include "loop/http_exchange.h"

namespace tubed::http {

// The headers of every answer of the API: it is not stored, and its type is not guessed.
loop::HttpHeaders api_headers();
// `may_have_run`: as api::Problem says of the problem in this frame.
loop::HttpHead http_head(const api::FrameHead& frame, bool may_have_run);
loop::HttpResponse http_response(std::string json);
loop::HttpResponse http_response(const api::Problem& problem);

}  // namespace tubed::http
