#include "server/api_answers.h"

namespace tubed::server {

loop::HttpHeaders api_headers() {
  return {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
}

loop::HttpHead http_head(const api::FrameHead& frame) {
  loop::HttpHead head{.status = frame.status,
                      .content_type = frame.status == 204 ? nullptr : api::type_of(frame.content),
                      .headers = api_headers(),
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
  loop::HttpResponse response{.status = problem.status,
                              .content_type = api::type_of(api::Content::problem),
                              .text = api::to_json(problem),
                              .headers = api_headers()};
  // [RFC 6750, section 3]
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace tubed::server
