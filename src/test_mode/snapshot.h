// Snapshot: the durable state of a queue at one moment, in memory. Bodies are shared with the
// queue.
#pragma once

#include <deque>

#include "engine/engine.h"
#include "facts/owned_fact.h"

namespace tubed::test_mode {

class Snapshot final : public FactSink {
 public:
  // The durable state of `engine` at the time `now`; a reserved job is where it rested before.
  // O(jobs).
  Snapshot(const engine::Engine& engine, Time now);

  Time now() const { return now_; }
  std::uint64_t jobs() const { return jobs_; }
  // Emits the facts that give this state. O(jobs).
  void visit(FactSink& sink) const;

  void fact(const Fact& fact) override;

 private:
  std::deque<OwnedFact> facts_;
  std::uint64_t jobs_ = 0;
  Time now_;
};

}  // namespace tubed::test_mode
