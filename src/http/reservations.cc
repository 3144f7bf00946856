#include "http/reservations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/process.h"
#include "text/numbers.h"

namespace tubed::http {

namespace {

// How long a client stays at most after the TTR of its job.
constexpr Duration kSweepInterval = std::chrono::seconds(1);

void close(const ApiClient& client) {
  client.channel->set_peer(nullptr);
  client.channel->end_input();
}

std::string role_of(const ApiClient& client) {
  const commands::Principal* principal = client.client->conversation().principal();
  const commands::ActiveRole* role = principal == nullptr ? nullptr : principal->role();
  return role == nullptr ? "" : role->role().name;
}

// The parts of "cafe.7".
struct Token {
  std::string_view name;
  std::optional<JobId> job = std::nullopt;
};
std::optional<Token> parse_token(std::string_view token) {
  const std::size_t point = token.find('.');
  if (point == std::string_view::npos) return Token{.name = token};
  const auto job = parse_number<JobId>(token.substr(point + 1));
  if (!job) return std::nullopt;
  return Token{.name = token.substr(0, point), .job = job};
}

bool has(const std::vector<JobId>& jobs, JobId job) {
  return std::ranges::find(jobs, job) != jobs.end();
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
  std::vector<JobId> held = service_.engine().queries().held_jobs(client.client->session());
  const auto found = by_token_.find(token);
  if (token.empty() || held.empty()) {
    if (found != by_token_.end()) end(found);
    close(client);
    return wake(token);
  }
  std::unique_ptr<Reservation>& reservation = by_token_[token];
  if (reservation == nullptr) {
    const bool several = held.size() > 1;
    Holding holding{.role = role_of(client), .jobs = std::move(held), .several = several};
    reservation = std::make_unique<Reservation>(*this, client, std::move(holding));
  }
  reservation->busy = false;
  client.channel->set_peer(reservation.get());
  if (by_token_.size() == 1) sweep_.arm(kSweepInterval);
  wake(token);
}

void Reservations::await(const std::string& token, ApiExchange& exchange) {
  awaiting_.emplace(token, &exchange);
}

void Reservations::stop_awaiting(ApiExchange& exchange) {
  std::erase_if(awaiting_, [&](const auto& entry) { return entry.second == &exchange; });
}

// The first takes the client, and the others await it again.
void Reservations::wake(const std::string& token) {
  const auto [begin, end] = awaiting_.equal_range(token);
  std::vector<ApiExchange*> woken;
  for (auto at = begin; at != end; ++at) woken.push_back(at->second);
  awaiting_.erase(begin, end);
  for (ApiExchange* exchange : woken) exchange->reservation_is_free();
}

Reservations::Taken Reservations::take(std::string_view token, std::string_view role) {
  const auto named = parse_token(token);
  if (!named) return {};
  const auto found = by_token_.find(named->name);
  const auto ended = ended_.find(named->name);
  if (found == by_token_.end() && ended == ended_.end()) return {};
  const Holding& holding = found == by_token_.end() ? ended->second : found->second->holding;
  if (holding.role != role) return {};
  Taken taken{.token = std::string(named->name)};
  if (named->job) {
    if (!has(holding.jobs, *named->job)) return {};
    taken.job = *named->job;
  } else if (!holding.several) {
    taken.job = holding.jobs.front();
  }
  taken.found = Found::ended;
  if (found == by_token_.end()) return taken;
  Reservation& reservation = *found->second;
  if (reservation.busy) {
    taken.found = Found::busy;
    return taken;
  }
  // Its TTR may have passed, and the job may be ready; the sweep closes its client.
  const SessionId session = reservation.client.client->session();
  const bool holds = taken.job == 0
                         ? service_.engine().holds_jobs(session)
                         : service_.engine().queries().tube_of_held(session, taken.job).has_value();
  if (!holds) return taken;
  reservation.busy = true;
  taken.found = Found::free;
  taken.client = reservation.client;
  return taken;
}

void Reservations::take_back(const ApiClient& client) {
  begin_tick_();
  service_.engine().take_back(client.client->session(), service_.now(), service_);
}

void Reservations::undo(const std::string& token) {
  const auto found = by_token_.find(token);
  if (found == by_token_.end() || found->second->busy) return;
  const ApiClient client = found->second->client;
  by_token_.erase(found);  // the client of HTTP does not know the token
  take_back(client);
  close(client);
}

void Reservations::forget(const std::string& token) {
  const auto found = by_token_.find(token);
  if (found != by_token_.end()) end(found);
  wake(token);
}

// Removes the reservation and remembers its jobs.
Reservations::ByToken::iterator Reservations::end(ByToken::iterator reservation) {
  auto entry = by_token_.extract(reservation++);
  Holding holding = std::move(entry.mapped()->holding);
  std::erase_if(holding.jobs,
                [this](JobId job) { return service_.engine().queries().tube_of(job).empty(); });
  if (holding.jobs.empty()) return reservation;
  ended_jobs_ += holding.jobs.size();
  ended_tokens_.push_back(entry.key());
  ended_.insert_or_assign(std::move(entry.key()), std::move(holding));
  while (ended_jobs_ > kMostEndedJobs) {
    const auto oldest = ended_.find(ended_tokens_.front());
    ended_jobs_ -= oldest->second.jobs.size();
    ended_.erase(oldest);
    ended_tokens_.pop_front();
  }
  return reservation;
}

void Reservations::close_ended() {
  begin_tick_();
  for (auto at = by_token_.begin(); at != by_token_.end();) {
    const ApiClient client = at->second->client;
    const bool ended = !at->second->busy && !service_.engine().holds_jobs(client.client->session());
    at = ended ? end(at) : std::next(at);
    if (ended) close(client);
  }
  if (!by_token_.empty()) sweep_.arm(kSweepInterval);
}

// The server has closed the client while no request used it.
void Reservations::closed(const Reservation& reservation) {
  const auto found = std::ranges::find_if(
      by_token_, [&](const auto& entry) { return entry.second.get() == &reservation; });
  if (found != by_token_.end()) end(found);
}

}  // namespace tubed::http
