#include "server/patience.h"

#include <algorithm>

namespace tubed::server {

namespace {

// Keeps the client in the list, in the order of `since`, exactly while something is owed.
template <class List>
void follow(List& list, Client& client, Stall& stall, bool owed, bool progress, Time now) {
  if (owed == stall.listed && !(owed && progress)) return;
  if (stall.listed) list.erase(&client);
  if (owed) {
    stall.since = now;
    list.push_back(&client);
  }
  stall.listed = owed;
}

}  // namespace

void Patience::add(Client& client, Time now) {
  client.last_active = now;
  by_activity_.push_back(&client);
}

void Patience::remove(Client& client) {
  by_activity_.erase(&client);
  if (client.taking.listed) by_taking_.erase(&client);
  if (client.sending.listed) by_sending_.erase(&client);
}

void Patience::active(Client& client, Time now) {
  client.last_active = now;
  by_activity_.erase(&client);
  by_activity_.push_back(&client);
}

void Patience::moved(Client& client, bool took, bool sent, Time now) {
  const auto& conversation = client.conversation();
  follow(by_taking_, client, client.taking, client.owes_taking(), took, now);
  // A body that is all here and waits for the journal is no fault of the client.
  const bool owes_body = conversation.in_body() && !conversation.waits_for_log();
  follow(by_sending_, client, client.sending, owes_body, sent, now);
}

void Patience::excuse_senders(Time now) {
  for (Client* client = by_sending_.first(); client != nullptr; client = by_sending_.next(client)) {
    client->sending.since = now;
  }
}

Time Patience::next_deadline() const {
  Time next = kNever;
  if (limits_.idle > Duration::zero() && !by_activity_.empty()) {
    next = by_activity_.first()->last_active + limits_.idle;
  }
  if (!by_taking_.empty()) next = std::min(next, by_taking_.first()->taking.since + limits_.stall);
  if (!by_sending_.empty()) {
    next = std::min(next, by_sending_.first()->sending.since + limits_.stall);
  }
  return next;
}

std::vector<Patience::Overdue> Patience::overdue(Time now) {
  std::vector<Overdue> result;
  for (Client* client = by_taking_.first(); client != nullptr && stalled(client->taking, now);
       client = by_taking_.next(client)) {
    result.push_back({client, Reason::stall});
  }
  for (Client* client = by_sending_.first(); client != nullptr && stalled(client->sending, now);
       client = by_sending_.next(client)) {
    if (!stalled(client->taking, now)) result.push_back({client, Reason::stall});
  }
  if (limits_.idle == Duration::zero()) return result;
  Client* next = nullptr;
  for (Client* client = by_activity_.first(); client != nullptr; client = next) {
    if (client->last_active + limits_.idle > now) break;
    next = by_activity_.next(client);
    if (stalled(client->taking, now) || stalled(client->sending, now)) continue;
    if (client->conversation().idle()) {
      result.push_back({client, Reason::idle});
    } else {
      active(*client, now);  // it is busy in its own way: looked at again when as much has passed
    }
  }
  return result;
}

}  // namespace tubed::server
