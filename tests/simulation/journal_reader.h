// JournalReader: reads the journal while the process writes it, as `--check`, `--dump` and
// `--backup` do, and after a stop.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/simulation/chance.h"
#include "tests/simulation/machine.h"

namespace tubed::simulation {

// Reads at random moments until it is destroyed or the process ends. Meanwhile the disk continues
// its operations.
// 1. A journal is whole whenever it is read.
// 2. A copy that succeeds can be recovered, whatever the journal had lost before.
// 3. After an orderly stop all facts are durable: damage is an error, and does not look like the
//    torn end that a crash leaves.
class JournalReader {
 public:
  JournalReader(World& world, Machine& machine);

  void begin_process();
  void end_process() { process_.reset(); }
  // The process has stopped properly.
  void check_after_stop();

 private:
  void read_later();
  void check();
  void back_up_a_damaged_copy();

  World& world_;
  Machine& machine_;
  Chance chance_;
  std::shared_ptr<int> process_;  // lets events check that it still runs
};

}  // namespace tubed::simulation
