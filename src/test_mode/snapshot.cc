#include "test_mode/snapshot.h"

namespace tubed::test_mode {

Snapshot::Snapshot(const engine::Engine& engine, Time now) : now_(now) {
  engine.durable_state().visit(now, *this);
}

void Snapshot::fact(const Fact& fact) {
  facts_.emplace_back(fact);
  if (added_in(fact) != nullptr) ++jobs_;
}

void Snapshot::visit(FactSink& sink) const {
  for (const OwnedFact& fact : facts_) sink.fact(fact.fact());
}

}  // namespace tubed::test_mode
