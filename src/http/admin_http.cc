#include "http/admin_http.h"

#include "stats/metrics.h"

namespace tubed::http {

using loop::HttpRequest;
using loop::HttpResponse;

namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPaths = "tubed answers /metrics, /healthz, /readyz and /leader\n";

// `reason`: why the server is not in this state; empty: it is.
HttpResponse state_page(std::string_view state, std::string_view reason) {
  if (reason.empty()) return {.text = std::string(state) + '\n'};
  return {.status = 503, .text = std::string(reason) + '\n'};
}

}  // namespace

void AdminHttp::listen(os::Socket socket, const std::string& path) {
  if (!http_) {
    http_.emplace(loop_, *this);
    http_->set_tls(tls_);
    http_->set_handshake_limits(handshake_limits_);
    http_->set_keep_alive(keep_alive_);
  }
  http_->listen(std::move(socket), path);
}

void AdminHttp::set_tls(std::shared_ptr<const loop::TlsContext> tls) {
  tls_ = std::move(tls);
  if (http_) http_->set_tls(tls_);
}

void AdminHttp::set_handshake_limits(const loop::HandshakeLimits& limits) {
  handshake_limits_ = limits;
  if (http_) http_->set_handshake_limits(limits);
}

void AdminHttp::set_keep_alive(std::chrono::seconds idle) {
  keep_alive_ = idle;
  if (http_) http_->set_keep_alive(idle);
}

void AdminHttp::tune(Duration keepalive_idle) {
  if (http_) http_->tune(keepalive_idle);
}

loop::HttpReply AdminHttp::respond(const HttpRequest& request) {
  host_.begin_tick();
  const std::string_view path = request.path();
  if (site_->serves(path)) return site_->respond(request, *http_);
  if (request.method() != "GET" && !request.is_head()) {
    return HttpResponse{
        .status = 405, .text = "only GET and HEAD\n", .headers = {{"Allow", "GET, HEAD"}}};
  }
  if (request.body_bytes() != 0)
    return HttpResponse{.status = 413, .text = "a request has no body here\n"};
  if (path == "/metrics") {
    if (auto refusal = site_->refuse_metrics(request)) return std::move(*refusal);
  }
  return page(path);
}

HttpResponse AdminHttp::page(std::string_view path) {
  if (path == "/metrics") return metrics();
  if (path == "/healthz") return {.text = "ok\n"};
  if (path == "/readyz") return state_page("ready", host_.unready());
  if (path == "/leader") return state_page("leader", host_.not_leader());
  if (path == "/") return {.text = kPaths};
  return {.status = 404, .text = kPaths};
}

HttpResponse AdminHttp::metrics() {
  HttpResponse response;
  response.content_type = kMetricsType;
  stats::MetricsPage page(service_.server_state(), service_.engine());
  response.next_part = [this, page = std::move(page)](std::size_t bytes,
                                                      std::string& text) mutable {
    host_.begin_tick();
    return page.append_piece(service_.now(), bytes, text);
  };
  return response;
}

void AdminHttp::on_http_error(const std::string& reason) {
  host_.begin_tick();
  log_.limited(os::Log::Level::error, service_.tick_time(), "cannot take HTTP connections",
               {{"reason", reason}});
}

}  // namespace tubed::http
