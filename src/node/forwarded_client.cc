#include "node/forwarded_client.h"

#include <utility>

#include "base/planted.h"

namespace tubed::node {

cluster::ForwardedClient describe_client(const loop::Channel& channel,
                                         const serving::ConnectionOrigin& origin) {
  cluster::ForwardedClient client{.address = channel.peer(),
                                  .tls_name = channel.tls_name(),
                                  .listener = to_string(origin.listen),
                                  .auth = static_cast<std::uint8_t>(origin.listen.auth),
                                  .role = origin.listen.role,
                                  .subject = origin.certificate.subject,
                                  .names = origin.certificate.names};
  if (origin.process) {
    client.has_process = true;
    client.process = origin.process->process;
    client.user = origin.process->user;
    client.groups = origin.process->groups;
  }
  return client;
}

loop::ProxiedClient proxied_client(const cluster::ForwardedClient& client) {
  return {.address = client.address, .tls_name = client.tls_name};
}

void with_origin(const cluster::ForwardedClient& client,
                 const std::function<void(const serving::ConnectionOrigin&)>& use) {
  auto listen = parse_listen(client.listener);
  if (!listen || client.auth > static_cast<std::uint8_t>(AuthMode::peer)) return;
  listen->auth = static_cast<AuthMode>(client.auth);
  if (!TUBED_PLANTED(forwarded_client_loses_its_role)) listen->role = client.role;
  serving::ConnectionOrigin origin{
      .listen = *listen,
      .certificate = {.subject = client.subject, .names = client.names},
      .is_forwarded = true};
  if (client.has_process) {
    origin.process = os::PeerCredentials{
        .process = client.process, .user = client.user, .groups = client.groups};
  }
  use(origin);
}

}  // namespace tubed::node
