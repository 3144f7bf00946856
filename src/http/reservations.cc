#include "http/reservations.h"

#include <utility>
#include <vector>

#include "os/process.h"

namespace tubed::http {

namespace {

// How long a client stays at most after the TTR of its job.
constexpr Duration kSweepInterval = std::chrono::seconds(1);

void close(const ApiClient& client) {
  client.channel->set_peer(nullptr);
  client.channel->end_input();
}

}  // namespace

Reservations::Reservations(loop::Loop& loop, commands::Service& service,
                           std::function<void()> begin_tick)
    : service_(service),
      begin_tick_(std::move(begin_tick)),
      sweep_(loop, [this] { close_ended(); }) {}

std::string Reservations::make_token() {
  // In two statements: the order of operands is unspecified.
  std::string token = os::random_instance_id();
  token += os::random_instance_id();
  return token;
}

void Reservations::keep(const std::string& token, const ApiClient& client) {
  const std::vector<JobId> held = service_.engine().queries().held_jobs(client.client->session());
  if (token.empty() || held.empty()) {
    by_token_.erase(token);
    return close(client);
  }
  std::unique_ptr<Reservation>& reservation = by_token_[token];
  if (reservation == nullptr)
    reservation = std::make_unique<Reservation>(*this, client, held.front());
  reservation->busy = false;
  client.channel->set_peer(reservation.get());
  if (by_token_.size() == 1) sweep_.arm(kSweepInterval);
}

Reservations::Taken Reservations::take(std::string_view token) {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return {};
  Reservation& reservation = *found->second;
  // Its TTR has passed, and the job may be ready; the sweep closes its client.
  const bool ended = !service_.engine().holds_jobs(reservation.client.client->session());
  if (ended && !reservation.busy) return {};
  if (std::exchange(reservation.busy, true)) return {.found = Found::busy};
  return {.found = Found::free, .client = reservation.client, .job = reservation.job};
}

void Reservations::take_back(const ApiClient& client) {
  begin_tick_();
  service_.engine().take_back(client.client->session(), service_.now(), service_);
}

void Reservations::undo(const std::string& token) {
  const auto found = by_token_.find(token);
  if (found == by_token_.end() || found->second->busy) return;
  const ApiClient client = found->second->client;
  by_token_.erase(found);
  take_back(client);
  close(client);
}

bool Reservations::is_of(std::string_view token, const commands::ActiveRole* role) const {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return false;
  const commands::Principal* principal = found->second->client.client->conversation().principal();
  return (principal == nullptr ? nullptr : principal->role()) == role;
}

void Reservations::forget(const std::string& token) {
  by_token_.erase(token);
}

void Reservations::close_ended() {
  begin_tick_();
  std::erase_if(by_token_, [this](const auto& entry) {
    const Reservation& reservation = *entry.second;
    const bool ended =
        !reservation.busy && !service_.engine().holds_jobs(reservation.client.client->session());
    if (ended) close(reservation.client);
    return ended;
  });
  if (!by_token_.empty()) sweep_.arm(kSweepInterval);
}

// The server has closed the client while no request used it.
void Reservations::closed(const Reservation& reservation) {
  std::erase_if(by_token_, [&](const auto& entry) { return entry.second.get() == &reservation; });
}

}  // namespace tubed::http
