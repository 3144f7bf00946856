#include "server/patience.h"

#include <algorithm>

namespace tubed::server {

void Patience::add(Client& client, Time now) {
  client.last_active = now;
  by_activity_.push_back(&client);
}

void Patience::remove(Client& client) {
  by_activity_.erase(&client);
  if (client.stalled) by_progress_.erase(&client);
}

void Patience::active(Client& client, Time now) {
  client.last_active = now;
  by_activity_.erase(&client);
  by_activity_.push_back(&client);
}

void Patience::wrote(Client& client, bool progress, Time now) {
  const bool stalled = !client.conversation().replies().empty();
  const bool moves = stalled != client.stalled || (stalled && progress);
  if (!moves) return;
  if (client.stalled) by_progress_.erase(&client);
  if (stalled) {
    client.last_progress = now;
    by_progress_.push_back(&client);
  }
  client.stalled = stalled;
}

Time Patience::next_deadline() const {
  Time next = kNever;
  if (limits_.idle > Duration::zero() && !by_activity_.empty()) {
    next = by_activity_.first()->last_active + limits_.idle;
  }
  if (!by_progress_.empty()) {
    next = std::min(next, by_progress_.first()->last_progress + limits_.write);
  }
  return next;
}

std::vector<Patience::Overdue> Patience::overdue(Time now) {
  std::vector<Overdue> result;
  for (Client* client = by_progress_.first(); client != nullptr;
       client = by_progress_.next(client)) {
    if (client->last_progress + limits_.write > now) break;
    result.push_back({client, Reason::write});
  }
  if (limits_.idle == Duration::zero()) return result;
  Client* next = nullptr;
  for (Client* client = by_activity_.first(); client != nullptr; client = next) {
    if (client->last_active + limits_.idle > now) break;
    next = by_activity_.next(client);
    if (client->conversation().idle()) {
      result.push_back({client, Reason::idle});
    } else {
      active(*client, now);  // it is busy in its own way: looked at again when as much has passed
    }
  }
  return result;
}

}  // namespace tubed::server
