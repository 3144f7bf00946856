// ClientQueue: a queue of clients, in the order in which they were added, each once.
//
// The queue has session ids, and a flag in each client says that it is queued. When a client
// closes, its id stays in the queue. Session ids are reused, so the id may belong to another client
// by then, whose flag is not set.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "serving/client.h"

namespace tubed::serving {

class ClientQueue {
 public:
  // `queued`: the flag, which belongs to this queue.
  explicit ClientQueue(bool QueuedIn::*queued) : queued_(queued) {}

  bool empty() const { return first_ == sessions_.size(); }
  // Includes clients that were closed while they were queued.
  std::size_t size() const { return sessions_.size() - first_; }

  // Does nothing if the client is queued. O(1) amortised.
  void add(Client& client) {
    if (std::exchange(client.queued.*queued_, true)) return;
    sessions_.push_back(client.session());
  }

  // Removes the first client and returns it; null if it is closed. Precondition: !empty(). O(1)
  // amortised.
  template <class Find>
  Client* take_first(const Find& client_of) {
    Client* const client = taken(client_of(sessions_[first_++]));
    if (first_ == sessions_.size()) {
      sessions_.clear();
      first_ = 0;
    } else if (first_ >= kKeptTaken && first_ >= sessions_.size() / 2) {
      sessions_.erase(sessions_.begin(), sessions_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return client;
  }

  // Removes all clients that are queued now, and calls visit(client) for each. Clients that `visit`
  // adds stay for the next call. `visit` must not call it. O(n).
  template <class Find, class Visit>
  void take_all(const Find& client_of, const Visit& visit) {
    if (empty()) return;
    taking_.clear();
    taking_.swap(sessions_);
    for (std::size_t i = std::exchange(first_, 0); i < taking_.size(); ++i) {
      if (Client* const client = taken(client_of(taking_[i]))) visit(*client);
    }
  }

 private:
  // Removed entries are erased when they are at least this many, and half of all.
  static constexpr std::size_t kKeptTaken = 64;

  Client* taken(Client* client) const {
    return client != nullptr && std::exchange(client->queued.*queued_, false) ? client : nullptr;
  }

  bool QueuedIn::*queued_;
  std::vector<SessionId> sessions_;
  std::size_t first_ = 0;          // the entries before it are removed
  std::vector<SessionId> taking_;  // of take_all(); a member to reuse its memory
};

}  // namespace tubed::serving
