// The answers of the API as those of HTTP.
#pragma once

#include <string>

#include "api/frame.h"
#include "api/problem.h"
#include "loop/http_exchange.h"

namespace tubed::http {

// Of every answer of the API: it is not stored, and is nothing but what its type says.
loop::HttpHeaders api_headers();
// `may_have_run`: as api::Problem says of the problem in this frame.
loop::HttpHead http_head(const api::FrameHead& frame, bool may_have_run);
loop::HttpResponse http_response(std::string json);
loop::HttpResponse http_response(const api::Problem& problem);

}  // namespace tubed::http
