#include "http/api_answers.h"

#include "base/planted.h"

namespace tubed::http {

loop::HttpHeaders api_headers() {
  return {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
}

namespace {

constexpr const char* kRetrySeconds = "1";

// A request that cannot be served now may be sent again, unless its command may have run: programs
// repeat what has Retry-After.
loop::HttpHeaders headers_of(unsigned status, bool may_have_run) {
  loop::HttpHeaders headers = api_headers();
  const bool may_repeat = !may_have_run || TUBED_PLANTED(closed_requests_are_repeated);
  if (may_repeat && (status == 429 || status == 503))
    headers.emplace_back("Retry-After", kRetrySeconds);
  // [RFC 6750, section 3]
  if (status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  return headers;
}

}  // namespace

loop::HttpHead http_head(const api::FrameHead& frame, bool may_have_run) {
  loop::HttpHead head{.status = frame.status,
                      .content_type = frame.status == 204 ? nullptr : api::type_of(frame.content),
                      .headers = headers_of(frame.status, may_have_run),
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
          .headers = headers_of(problem.status, problem.may_have_run)};
}

}  // namespace tubed::http
