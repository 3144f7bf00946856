#include "server/endpoint.h"

#include <algorithm>

#include "commands/metrics.h"
#include "server/door.h"

namespace tubed::server {

using platform::HttpResponse;
using platform::InheritedSocket;

namespace {

// As systemd passes it on; see FileDescriptorName= in tubed-http.socket.
constexpr std::string_view kSocketName = "http";
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPaths = "tubed answers /metrics, /healthz and /readyz\n";

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(platform::Loop& loop, platform::Log& log,
                                                 const Settings& settings,
                                                 std::vector<InheritedSocket>& inherited,
                                                 const commands::Service& service,
                                                 EndpointHost& host) {
  const auto first =
      std::stable_partition(inherited.begin(), inherited.end(),
                            [](const InheritedSocket& one) { return one.name != kSocketName; });
  const bool has_inherited = first != inherited.end();
  std::unique_ptr<Endpoint> endpoint;
  if (!has_inherited && !settings.http_listen) return endpoint;
  endpoint.reset(new Endpoint(loop, log, service, host));
  bool is_among_them = false;
  for (auto one = first; one != inherited.end(); ++one) {
    is_among_them =
        is_among_them || (settings.http_listen &&
                          platform::local_address(one->socket) == to_string(*settings.http_listen));
    // Whoever made it removes its path.
    endpoint->add(std::move(one->socket), "", one->name);
  }
  inherited.erase(first, inherited.end());
  if (!settings.http_listen) return endpoint;
  if (has_inherited) {
    if (!is_among_them) tell_replaced(log, *settings.http_listen, kHttpUnit);
    return endpoint;
  }
  auto socket = TRY(open_door(*settings.http_listen, settings.tcp_backlog, kHttpUnit));
  endpoint->add(std::move(socket), settings.http_listen->path, "");
  return endpoint;
}

void Endpoint::add(platform::Socket socket, const std::string& path, const std::string& inherited) {
  tell_door(log_, "listening for HTTP", socket, inherited);
  http_.listen(std::move(socket), path);
}

HttpResponse Endpoint::answer(std::string_view path) {
  host_.begin_turn();
  if (path == "/metrics") return metrics();
  if (path == "/healthz") return {.text = "ok\n"};
  if (path == "/readyz") {
    const std::string_view reason = host_.unready();
    if (reason.empty()) return {.text = "ready\n"};
    return {.status = 503, .text = std::string(reason) + '\n'};
  }
  if (path == "/") return {.text = kPaths};
  return {.status = 404, .text = kPaths};
}

HttpResponse Endpoint::metrics() {
  HttpResponse response;
  response.content_type = kMetricsType;
  response.next_piece = [this, page = commands::MetricsPage(service_)](std::size_t bytes,
                                                                       std::string& text) mutable {
    host_.begin_turn();
    return page.append_piece(bytes, text);
  };
  return response;
}

void Endpoint::on_http_trouble(const std::string& reason) {
  host_.begin_turn();
  log_.limited(platform::Log::Level::error, service_.now(), "cannot take HTTP connections",
               {{"reason", reason}});
}

}  // namespace tubed::server
