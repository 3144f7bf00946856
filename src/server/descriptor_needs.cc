#include "server/descriptor_needs.h"

#include <algorithm>

#include "base/planted.h"
#include "loop/http_server.h"
#include "serving/held_connections.h"

namespace tubed::server {

namespace {

using loop::HttpServer;

constexpr std::uint64_t kOwn = 64;
// A connection of HTTP over TLS has a socket pair too (loop/bridge.h).
constexpr std::uint64_t kOfHttpTls = 3;

// A client that is passed to the leader has a connection to it, too.
std::uint64_t most_of_clients(const Settings& settings) {
  const ClusterSettings& cluster = settings.cluster;
  const bool forwards = cluster.enabled() && cluster.clients == ClusterClients::forward;
  return std::uint64_t{settings.connections} * (forwards ? 2 : 1);
}

std::uint64_t most_of_http(const Settings& settings) {
  if (TUBED_PLANTED(waits_need_no_descriptors)) return HttpServer::kMaxConnections;
  const std::uint64_t waits =
      settings.http.api == HttpApiLevel::off ? 0 : std::uint64_t{HttpServer::kMaxWaits};
  const std::uint64_t connections = HttpServer::kMaxConnections + waits;
  if (!settings.http_tls.enabled()) return connections;
  return connections * kOfHttpTls + settings.handshakes;
}

}  // namespace

std::uint64_t most_descriptors(const Settings& settings) {
  const bool has_tls = std::ranges::any_of(
      settings.listeners, [](const Listen& listen) { return listen.tls.enabled(); });
  const bool has_proxies = std::ranges::any_of(
      settings.listeners, [](const Listen& listen) { return !listen.proxies.empty(); });
  return kOwn + most_of_clients(settings) + serving::HeldConnections::kMost +
         (has_tls ? std::uint64_t{settings.handshakes} : 0) +
         (has_proxies ? std::uint64_t{settings.handshakes} : 0) + most_of_http(settings);
}

}  // namespace tubed::server
