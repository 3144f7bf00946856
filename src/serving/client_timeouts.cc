#include "serving/client_timeouts.h"

#include <algorithm>

#include "serving/client.h"

namespace tubed::serving {

namespace {

// Keeps the entry in the list, in the order of `since`, exactly while something is under way.
template <class List>
void follow(List& list, TimeoutEntry& entry, Stall& stall, bool under_way, bool moved, Time now) {
  if (under_way == stall.listed && !(under_way && moved)) return;
  if (stall.listed) list.erase(&entry);
  if (under_way) {
    stall.since = now;
    list.push_back(&entry);
  }
  stall.listed = under_way;
}

}  // namespace

void ClientTimeouts::add(Client& client, Time now) {
  client.timeouts.last_active = now;
  client.timeouts.idle_from = now;
  by_activity_.push_back(&client.timeouts);
  if (!client.conversation().awaits_authentication()) return;
  client.timeouts.handshake = {.listed = true, .since = now};
  by_handshake_.push_back(&client.timeouts);
}

void ClientTimeouts::remove(Client& client) {
  TimeoutEntry& entry = client.timeouts;
  by_activity_.erase(&entry);
  if (entry.output.listed) by_output_.erase(&entry);
  if (entry.input.listed) by_input_.erase(&entry);
  if (entry.handshake.listed) by_handshake_.erase(&entry);
}

void ClientTimeouts::touch(Client& client, Time now) {
  client.timeouts.last_active = now;
  restart_idle(client, now);
}

void ClientTimeouts::restart_idle(Client& client, Time now) {
  TimeoutEntry& entry = client.timeouts;
  entry.idle_from = now;
  by_activity_.erase(&entry);
  by_activity_.push_back(&entry);
}

void ClientTimeouts::update(Client& client, bool wrote, bool received, Time now) {
  const auto& conversation = client.conversation();
  TimeoutEntry& entry = client.timeouts;
  follow(by_output_, entry, entry.output, client.has_unsent(), wrote, now);
  // A body that has arrived and waits for the log does not count against the client.
  const bool body_missing = conversation.in_body() && !conversation.waits_for_log();
  follow(by_input_, entry, entry.input, body_missing, received, now);
  if (entry.handshake.listed && !conversation.awaits_authentication()) [[unlikely]] {
    by_handshake_.erase(&entry);
    entry.handshake.listed = false;
  }
}

void ClientTimeouts::restart_input(Time now) {
  for (TimeoutEntry* entry = by_input_.first(); entry != nullptr; entry = by_input_.next(entry)) {
    entry->input.since = now;
  }
}

Time ClientTimeouts::next_deadline() const {
  Time next = kNever;
  if (limits_.idle > Duration::zero() && !by_activity_.empty()) {
    next = by_activity_.first()->idle_from + limits_.idle;
  }
  if (!by_output_.empty()) next = std::min(next, by_output_.first()->output.since + limits_.stall);
  if (!by_input_.empty()) next = std::min(next, by_input_.first()->input.since + limits_.stall);
  if (!by_handshake_.empty())
    next = std::min(next, by_handshake_.first()->handshake.since + limits_.handshake);
  return next;
}

std::vector<ClientTimeouts::Overdue> ClientTimeouts::overdue(Time now) {
  std::vector<Overdue> result;
  for (TimeoutEntry* entry = by_handshake_.first(); entry != nullptr && is_late(*entry, now);
       entry = by_handshake_.next(entry)) {
    result.push_back({&entry->client, Reason::handshake});
  }
  for (TimeoutEntry* entry = by_output_.first(); entry != nullptr && is_over(entry->output, now);
       entry = by_output_.next(entry)) {
    if (is_late(*entry, now)) continue;
    result.push_back({&entry->client, Reason::stall});
  }
  for (TimeoutEntry* entry = by_input_.first(); entry != nullptr && is_over(entry->input, now);
       entry = by_input_.next(entry)) {
    if (!is_over(entry->output, now) && !is_late(*entry, now))
      result.push_back({&entry->client, Reason::stall});
  }
  if (limits_.idle == Duration::zero()) return result;
  TimeoutEntry* next = nullptr;
  for (TimeoutEntry* entry = by_activity_.first(); entry != nullptr; entry = next) {
    if (entry->idle_from + limits_.idle > now) break;
    next = by_activity_.next(entry);
    if (is_over(entry->output, now) || is_over(entry->input, now) || is_late(*entry, now)) continue;
    if (entry->client.conversation().idle()) {
      result.push_back({&entry->client, Reason::idle});
    } else {
      // It holds or awaits a job: checked again after the same time.
      restart_idle(entry->client, now);
    }
  }
  return result;
}

}  // namespace tubed::serving
