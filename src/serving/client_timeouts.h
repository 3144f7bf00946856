// ClientTimeouts: finds the clients that have been idle for too long, or have stalled.
//
// A client is idle while it sends nothing, holds no job and waits for no job (timeouts.idle). It is
// stalled while unread replies or a body that it has begun to send make no progress
// (timeouts.stall). A client that has to authenticate has a limited time for that
// (timeouts.handshake). Each limit has a list of the clients to which it applies, in the order of
// time; only clients whose limit has passed are visited. Owns no client.
#pragma once

#include <cstdint>
#include <vector>

#include "base/intrusive_list.h"
#include "base/time.h"

namespace tubed::serving {

class Client;

// Output or input is under way; a byte of it last moved at `since`.
struct Stall {
  bool listed = false;
  Time since;
};

// The entry of one client in the lists of ClientTimeouts.
struct TimeoutEntry {
  explicit TimeoutEntry(Client& of) : client(of) {}

  Client& client;
  ListLinks<TimeoutEntry> activity_links;
  ListLinks<TimeoutEntry> output_links;
  ListLinks<TimeoutEntry> input_links;
  ListLinks<TimeoutEntry> handshake_links;
  Time last_active;  // when the client last sent something or its last wait ended
  Time idle_from;    // last_active, or when it was last found not to be idle
  Stall output;      // the client does not read its replies
  Stall input;       // the client has sent a part of a body
  Stall handshake;   // the client has not authenticated since it was added
};

struct TimeoutLimits {
  Duration idle{};  // zero: without limit
  Duration stall{};
  Duration handshake = Duration::max();
};

class ClientTimeouts {
 public:
  void set_limits(const TimeoutLimits& limits) { limits_ = limits; }

  void add(Client& client, Time now);
  void remove(Client& client);
  // The client has sent something, or its wait has ended. O(1).
  void touch(Client& client, Time now);
  // Restarts the idle timeout of a client that did nothing. O(1).
  void restart_idle(Client& client, Time now);
  // Starts, continues or ends the stalls of a client, after it was served. `wrote`: it took some of
  // its replies; `received`: bytes came from it. O(1).
  void update(Client& client, bool wrote, bool received, Time now);

  // No client is read from at the moment, so no client is slow in sending: restarts all times for
  // bodies. O(clients that are sending a body).
  void restart_input(Time now);

  // Returns when the first limit may be reached; kNever if no limit applies. O(1).
  Time next_deadline() const;

  enum class Reason : std::uint8_t { idle, stall, handshake };
  struct Overdue {
    Client* client;
    Reason reason;
  };
  // Returns the clients that have reached a limit, each once; they are to be closed. O(due).
  std::vector<Overdue> overdue(Time now);

  // The clients that have not authenticated. O(1).
  std::size_t unauthenticated() const { return by_handshake_.size(); }
  // Precondition: some client has not.
  Client* oldest_unauthenticated() const { return &by_handshake_.first()->client; }

  // Returns the client whose unread replies have waited longest; null if fewer than two clients
  // have unread replies. O(1).
  Client* slowest_reader() const {
    return by_output_.size() > 1 ? &by_output_.first()->client : nullptr;
  }

 private:
  bool is_late(const TimeoutEntry& entry, Time now) const {
    return entry.handshake.listed && now - entry.handshake.since >= limits_.handshake;
  }
  bool is_over(const Stall& stall, Time now) const {
    return stall.listed && stall.since + limits_.stall <= now;
  }

  TimeoutLimits limits_;
  IntrusiveList<TimeoutEntry, &TimeoutEntry::activity_links> by_activity_;
  IntrusiveList<TimeoutEntry, &TimeoutEntry::output_links> by_output_;
  IntrusiveList<TimeoutEntry, &TimeoutEntry::input_links> by_input_;
  IntrusiveList<TimeoutEntry, &TimeoutEntry::handshake_links> by_handshake_;
};

}  // namespace tubed::serving
