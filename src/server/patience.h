// Patience: which clients have been silent, or have not taken their replies, for too long.
//
// Two lists in the order of time, so that only what is due is looked at. Owns no client.
#pragma once

#include <vector>

#include "server/client.h"

namespace tubed::server {

struct PatienceLimits {
  Duration idle{};   // zero: for ever
  Duration write{};  // without taking a byte of the replies
};

class Patience {
 public:
  void set_limits(const PatienceLimits& limits) { limits_ = limits; }

  void add(Client& client, Time now);
  void remove(Client& client);
  // It sent something.
  void active(Client& client, Time now);
  // Its replies were written as far as possible; `progress`: it took some of them.
  void wrote(Client& client, bool progress, Time now);

  // When somebody's time may be up.
  Time next_deadline() const;

  enum class Reason : std::uint8_t { idle, write };
  struct Overdue {
    Client* client;
    Reason reason;
  };
  // Those whose time is up; they are to be closed. O(due).
  std::vector<Overdue> overdue(Time now);

 private:
  PatienceLimits limits_;
  IntrusiveList<Client, &Client::activity_links> by_activity_;
  IntrusiveList<Client, &Client::stalled_links> by_progress_;
};

}  // namespace tubed::server
