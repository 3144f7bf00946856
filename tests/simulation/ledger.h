// Ledger: the acknowledged jobs of a client, which no other client touches. Every start of the
// server must restore them or, after a loss of power, the jobs of an earlier moment, as the sync
// mode allows.
//
// The client sends one command at a time. A command that was unanswered when the connection ended
// may or may not have run. The cooldown of each unique key outlasts the life, so the key always
// belongs to its first job: a later put with the key returns the id of that job, even after its
// deletion.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/engine.h"
#include "tests/simulation/client.h"
#include "tests/simulation/history.h"

namespace tubed::simulation {

struct LedgerEntries {
  std::set<JobId> there;              // acknowledged
  std::set<JobId> gone;               // deleted and acknowledged
  std::map<std::string, JobId> keys;  // of jobs that exist or were deleted
  JobId last = 0;                     // last job added and acknowledged

  // Returns a line about the first acknowledged change that the queue lacks, or an empty text.
  std::string missing_in(const engine::Engine& engine, Time now) const;
  // True if the queue has all these entries and no later entry.
  bool fits(const engine::Engine& engine, Time now, const LedgerEntries& later) const;
};

struct Ledger : LedgerEntries {
  std::uint64_t made = 0;
  bool keeps_past = false;
  unsigned loss_count = 0;  // starts that may have lost entries
  History<LedgerEntries> past;

  // The server has acknowledged that it has added or deleted the job.
  void added(JobId id, Time now) {
    there.insert(id);
    last = std::max(last, id);
    keep(now);
  }
  void deleted(JobId id, Time now) {
    gone.insert(id);
    keep(now);
  }
  // Until the answer to its deletion, the job may or may not exist.
  void doubt(JobId id, Time now) {
    there.erase(id);
    keep(now);
  }
  void keep(Time now) {
    if (keeps_past) past.add(now, *this);
  }
  // A process has recovered the queue. Returns a line about what it lacks, or an empty text. After
  // losses, the entries of an earlier moment are restored.
  std::string recover(const engine::Engine& engine, Time now, const Losses& losses);
};

std::unique_ptr<Script> keep_ledger(World& world, Knowledge& known, Ledger& ledger,
                                    const std::string& name);

}  // namespace tubed::simulation
