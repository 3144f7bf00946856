// A life: one server with its clients, from a seed. The server lives in several consecutive
// processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "tests/simulation/reductions.h"

namespace tubed::simulation {

struct LifeOptions {
  Duration duration = std::chrono::seconds(2);
  unsigned clients = 6;
  unsigned ledgers = 1;  // of the clients
  unsigned models = 3;   // clients of the model, additional
  bool has_journal = true;
  bool ends = true;        // processes are killed, lose power, and are stopped
  bool operated = false;   // drains, reloads, steps of the wall clock, stalls (operator.h)
  bool has_roles = false;  // and three more clients with roles (roles.h)
  bool has_http = false;   // the API and its clients (http_clients.h)
  // Many jobs, most of them buried or dead, and readers of the journal (burier.h, churner.h,
  // journal_reader.h).
  bool is_busy = false;
  // The mode of journal.sync is `never`. Power is cut only after an orderly stop, when everything
  // must be durable.
  bool is_unsynced = false;
  Reductions reductions = {};
  std::string until = {};  // the first line of the story with this text is a problem, unless empty
  bool prints_story = false;
  std::uint64_t most_events = 0;         // more are a problem; 0: unlimited
  std::uint64_t* events_seen = nullptr;  // their number is stored here as they occur
};

struct LifeReport {
  std::uint64_t seed = 0;
  std::uint64_t events = 0;
  std::uint64_t digest = 0;
  std::uint64_t processes = 0;
  std::uint64_t kills = 0;
  std::uint64_t power_cuts = 0;
  std::uint64_t stops = 0;
  // According to the log.
  std::uint64_t drains = 0;
  std::uint64_t drain_timeouts = 0;
  std::uint64_t reloads = 0;
  // The most steps of the engine in an iteration of the loop, and the most iterations before the
  // answer to a command that does not wait.
  std::uint64_t most_walked = 0;
  std::uint64_t most_ticks = 0;
  std::uint64_t losses = 0;  // starts that had lost acknowledged changes
  std::string problem;       // empty: no problem
  std::string story;         // last lines before it
};

// The same seed and options give the same life. O(events).
LifeReport live(std::uint64_t seed, const LifeOptions& options);

// Returns the names of the clients of a life, including those that it omits.
std::vector<std::string> clients_of(std::uint64_t seed, const LifeOptions& options);

}  // namespace tubed::simulation
