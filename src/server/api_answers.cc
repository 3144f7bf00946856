#include "server/api_answers.h"

namespace tubed::server {

loop::HttpHeaders api_headers() {
  return {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
}

namespace {

// A request that cannot be served now may be sent again.
constexpr const char* kRetrySeconds = "1";

loop::HttpHeaders headers_of(unsigned status) {
  loop::HttpHeaders headers = api_headers();
  if (status == 429 || status == 503) headers.emplace_back("Retry-After", kRetrySeconds);
  // [RFC 6750, section 3]
  if (status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  return headers;
}

}  // namespace

loop::HttpHead http_head(const api::FrameHead& frame) {
  loop::HttpHead head{.status = frame.status,
                      .content_type = frame.status == 204 ? nullptr : api::type_of(frame.content),
                      .headers = headers_of(frame.status),
                      .length = frame.bytes};
  if (!frame.location.empty()) head.headers.emplace_back("Location", frame.location);
  return head;
}

loop::HttpResponse http_response(std::string json) {
  return {.content_type = api::type_of(api::Content::json),
          .text = std::move(json),
          .headers = api_headers()};
}

loop::HttpResponse http_response(const api::Problem& problem) {
  return {.status = problem.status,
          .content_type = api::type_of(api::Content::problem),
          .text = api::to_json(problem),
          .headers = headers_of(problem.status)};
}

}  // namespace tubed::server
