// Patience: which clients have been silent for too long, or let something that is under way stand
// still: replies that they do not take, a body that they do not finish.
//
// Lists in the order of time, so that only what is due is looked at. Owns no client.
#pragma once

#include <vector>

#include "server/client.h"

namespace tubed::server {

struct PatienceLimits {
  Duration idle{};   // zero: for ever
  Duration stall{};  // without moving a byte of what is under way
};

class Patience {
 public:
  void set_limits(const PatienceLimits& limits) { limits_ = limits; }

  void add(Client& client, Time now);
  void remove(Client& client);
  // It was heard of, or its wait ended.
  void active(Client& client, Time now);
  // Looks at what is under way; `took`: it took some of its replies; `sent`: bytes came from it.
  void moved(Client& client, bool took, bool sent, Time now);

  // Nobody is read from at the moment: it is not they who are slow. O(those who send a body).
  void excuse_senders(Time now);

  // When somebody's time may be up.
  Time next_deadline() const;

  enum class Reason : std::uint8_t { idle, stall };
  struct Overdue {
    Client* client;
    Reason reason;
  };
  // Those whose time is up, each once; they are to be closed. O(due).
  std::vector<Overdue> overdue(Time now);

  // Of several who have replies to take, who has let them wait for longest; else null. O(1).
  Client* slowest_taker() const { return by_taking_.size() > 1 ? by_taking_.first() : nullptr; }

 private:
  bool stalled(const Stall& stall, Time now) const {
    return stall.listed && stall.since + limits_.stall <= now;
  }

  PatienceLimits limits_;
  IntrusiveList<Client, &Client::activity_links> by_activity_;
  IntrusiveList<Client, &Client::taking_links> by_taking_;
  IntrusiveList<Client, &Client::sending_links> by_sending_;
};

}  // namespace tubed::server
