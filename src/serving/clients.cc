#include "serving/clients.h"

namespace tubed::serving {

using os::Log;

void Clients::set_limits(const Settings& settings) {
  output_memory_ = settings.output_memory;
  handshakes_ = settings.handshakes;
  timeouts_.set_limits({.idle = settings.idle_timeout,
                        .stall = settings.stall_timeout,
                        .handshake = settings.handshake_timeout});
}

Client& Clients::add(std::unique_ptr<loop::Channel> channel, ClientHost& host,
                     commands::Admission admission, Arrival arrival) {
  auto client = std::make_unique<Client>(std::move(channel), service_, host,
                                         std::span(read_buffer_.get(), kReadBufferBytes),
                                         std::move(admission));
  const SessionId session = client->session();
  log_.limited(Log::Level::debug, service_.tick_time(), "connected",
               {{"session", std::uint64_t{session}}});
  timeouts_.add(*client, service_.tick_time());
  if (session >= clients_.size()) clients_.resize(session + 1);
  clients_[session] = std::move(client);
  ++count_;
  clients_[session]->arrival = arrival;
  if (arrival == Arrival::request) ++requests_;
  if (timeouts_.unauthenticated() > handshakes_) {
    service_.counters().count(stats::Counter::client_handshake);
    close_for_limit(*timeouts_.oldest_unauthenticated(), "limits.handshakes", "handshakes");
  }
  return *clients_[session];
}

void Clients::close(Client& client, std::string_view reason) {
  const SessionId session = client.session();
  log_.limited(Log::Level::debug, service_.tick_time(), "closed",
               {{"session", std::uint64_t{session}}, {"reason", reason}});
  timeouts_.remove(client);
  count_output(client, 0);
  if (client.closes_last()) --last_count_;
  client.conversation().audit_unfinished();
  if (client.arrival == Arrival::request) --requests_;
  clients_[session].reset();
  --count_;
}

void Clients::close_done(Client& client) {
  const commands::Principal* principal = client.conversation().principal();
  if (principal != nullptr && principal->is_refused() && on_refused_) {
    auto channel = client.take_channel();
    close(client, "refused");
    return on_refused_(std::move(channel));
  }
  if (!client.conversation().is_foreign()) return close(client, "done");
  log_.limited(Log::Level::warning, service_.tick_time(), "closing a client",
               {{"address", os::peer_word(client.address())},
                Log::optional("tls_name", client.tls_name()),
                {"reason", "it speaks HTTP or TLS"}});
  close(client, "foreign_protocol");
}

void Clients::close_all(std::string_view reason) {
  for (const auto& client : clients_) {
    if (client != nullptr) close(*client, reason);
  }
}

void Clients::close_forwarded(std::string_view reason) {
  for (const auto& client : clients_) {
    if (client != nullptr && client->is_forwarded) close(*client, reason);
  }
}

void Clients::stop_all() {
  stopping_ = true;
  for_each([&](Client& client) {
    client.stop();
    if (client.closes_last()) ++last_count_;
  });
}

bool Clients::finish_last() {
  if (last_count_ == 0 || count_ > last_count_) return false;
  for_each([](Client& client) { client.finish(); });
  last_count_ = 0;
  return true;
}

commands::ClientDetails Clients::describe(SessionId session) const {
  const Client* client = find(session);
  if (client == nullptr) return {};
  return {.address = os::peer_word(client->address()),
          .tls_name = client->tls_name(),
          .idle = service_.tick_time() - client->timeouts.last_active};
}

void Clients::close_overdue(bool paused) {
  const Time now = service_.tick_time();
  if (paused) timeouts_.restart_input(now);
  for (const auto& [client, reason] : timeouts_.overdue(now)) {
    if (reason == ClientTimeouts::Reason::handshake) {
      service_.counters().count(stats::Counter::client_handshake);
      close_for_limit(*client, "timeouts.handshake", "handshake");
      continue;
    }
    const bool idle = reason == ClientTimeouts::Reason::idle;
    if (idle && paused) {
      timeouts_.restart_idle(*client, now);
      continue;
    }
    service_.counters().count(idle ? stats::Counter::client_idle : stats::Counter::client_stalled);
    close_for_limit(*client, idle ? "timeouts.idle" : "timeouts.stall", idle ? "idle" : "stall");
  }
}

void Clients::close_for_limit(Client& client, const char* setting, std::string_view reason) {
  log_.limited(Log::Level::info, service_.tick_time(), "closing a client", {{"reason", setting}});
  close(client, reason);
}

bool Clients::close_slowest() {
  bool closed = false;
  while (buffered_output() > output_memory_) {
    Client* slowest = timeouts_.slowest_reader();
    if (slowest == nullptr) break;
    closed = true;
    log_.limited(Log::Level::warning, service_.tick_time(), "closing a client",
                 {{"reason", "limits.output_memory"}});
    service_.counters().count(stats::Counter::client_output_memory);
    close(*slowest, "output");
  }
  return closed;
}

}  // namespace tubed::serving
