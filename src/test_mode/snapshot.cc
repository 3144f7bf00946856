#include "test_mode/snapshot.h"

#include "base/overloaded.h"

namespace tubed::test_mode {

Snapshot::Snapshot(const engine::Engine& engine, Time now) : now_(now) {
  engine.visit_durable(now, *this);
}

void Snapshot::fact(const Fact& fact) {
  Kept& kept = facts_.emplace_back(Kept{fact, {}});
  const auto keep_name = [&](std::string_view& tube) {
    kept.tube = tube;
    tube = kept.tube;
  };
  std::visit(Overloaded{[&](Added& added) {
                          keep_name(added.tube);
                          ++jobs_;
                        },
                        [&](Paused& paused) { keep_name(paused.tube); }, [](Placed&) {},
                        [](Removed&) {}, [&](Flushed& flushed) { keep_name(flushed.tube); }},
             kept.fact);
}

void Snapshot::visit(FactSink& sink) const {
  for (const Kept& kept : facts_) sink.fact(kept.fact);
}

}  // namespace tubed::test_mode
