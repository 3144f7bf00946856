// Commands of simulated clients, made from the rows of the command table, so a new command is used
// at once; and the jobs that clients know of.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "commands/table.h"
#include "engine/engine.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/conditions.h"
#include "tests/simulation/net.h"
#include "tests/simulation/reductions.h"

namespace tubed::simulation {

// The jobs of a life, as known to all clients.
struct Knowledge {
  std::unordered_map<std::string, JobId> bodies;  // by body, for all puts; 0: not acknowledged
  std::unordered_map<JobId, std::string> by_id;
  std::deque<JobId> recent;        // ids that clients name in their commands
  std::deque<JobId> kept;          // jobs of ledgers, which may have been deleted
  std::deque<std::string> tokens;  // of reservations over HTTP
  std::uint64_t puts = 0;
  Reductions reductions;  // of the life
  // The most iterations of the loop before the answer to a command that does not wait.
  std::uint64_t most_ticks = 0;
  std::uint64_t queue = 0;  // of the ids: without a journal each process begins a new queue

  // The state of drain mode, and since when.
  struct Drain {
    bool active = false;
    Time since;
  };
  Drain drain;
  std::optional<Time> stopping_since;                 // when the process began to stop
  const engine::Engine* engine = nullptr;             // null: no process serves
  unsigned open_requests = 0;                         // over HTTP, not counting waiting ones
  std::deque<std::shared_ptr<Endpoint>> half_closed;  // connections of clients that have left
  std::uint64_t process = 0;                          // the number of the server's process
  bool serves = false;                                // the process has begun and is not stopping
  bool may_refuse = false;   // limits.connections was low at some time of this process
  Time refused_before = {};  // a process that has ended may have refused earlier connections
  Conditions conditions;

  // Forgets the jobs, because a process without a journal starts with an empty queue.
  void begin_queue() {
    ++queue;
    by_id.clear();
    recent.clear();
    kept.clear();
  }

  void add_recent(JobId id) { add(recent, id); }
  void add_kept(JobId id) { add(kept, id); }

  template <class Name>
  static void add(std::deque<Name>& ids, Name id) {
    constexpr std::size_t kMost = 24;
    ids.push_back(std::move(id));
    if (ids.size() > kMost) ids.pop_front();
  }
};

struct MadeCommand {
  const commands::Command* row = nullptr;
  std::string line = {};  // without its end
  std::string body = {};  // of a put
  Duration waits{};       // the longest time that the server may wait before the answer
  bool waits_for_ever = false;
  bool is_slow = false;           // the end of the body is sent later
  bool names_hidden_job = false;  // for a client with a role: a job in a tube of other clients
  Time begun = {};                // when the first bytes were sent
  Time sent = {};                 // when the last bytes were sent
};

// Returns a name of a tube, a group or a key.
std::string_view a_tube(Chance& chance);

// Makes a well-formed line of a random row; kShares lists the frequent rows.
MadeCommand make_command(Chance& chance, Knowledge& known);
MadeCommand make_command(const commands::Command& row, Chance& chance, Knowledge& known);

}  // namespace tubed::simulation
