// Replay: gives an engine that serves nobody yet what somebody has kept of another one's facts.
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
