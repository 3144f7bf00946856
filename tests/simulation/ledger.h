// Ledger: the acknowledged jobs of a client, which no other client touches. Every start of the
// server has to restore them.
//
// The client sends one command at a time. A command that was unanswered when the connection ended
// may have run or not. The cooldown of each unique key outlasts the life, so the key always belongs
// to its first job: a later put with the key returns the id of that job, even after its deletion.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/engine.h"
#include "tests/simulation/client.h"

namespace tubed::simulation {

struct Ledger {
  std::set<JobId> there;              // acknowledged
  std::set<JobId> gone;               // deleted, acknowledged
  std::map<std::string, JobId> keys;  // of jobs that are there or were deleted
  std::uint64_t made = 0;

  // Returns a line about the first acknowledged change that the queue lacks; empty without one.
  std::string missing_in(const engine::Engine& engine, Time now) const;
};

std::unique_ptr<Script> keep_ledger(World& world, Knowledge& known, Ledger& ledger,
                                    const std::string& name);

}  // namespace tubed::simulation
