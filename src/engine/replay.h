// Replay: a FactSink that applies facts to an engine, with one time for all facts.
//
// The engine must have no open session. See the replay law in facts/fact.h.
#pragma once

#include "engine/engine.h"

namespace tubed::engine {

class Replay final : public FactSink {
 public:
  Replay(Engine& engine, Time now) : engine_(engine), now_(now) {}
  void fact(const Fact& fact) override { engine_.replay(now_, fact); }

 private:
  Engine& engine_;
  Time now_;
};

}  // namespace tubed::engine
