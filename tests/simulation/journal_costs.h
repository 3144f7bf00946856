// JournalCosts: counts of the journal of a process, each with a bound on any machine.
#pragma once

#include <cstdint>
#include <string>

#include "engine/fact_log.h"

namespace tubed::simulation {

class JournalCosts {
 public:
  // Each returns a line about the count that exceeds its bound; empty without one.

  // A process has recovered: its replay of so many facts took so many steps.
  static std::string excess_of_replay(std::uint64_t facts, std::uint64_t steps);
  void begin_process() {
    const std::uint64_t largest = largest_segment_bytes_;
    *this = {};
    largest_segment_bytes_ = largest;
  }
  // To be called now and then. `removals`: the files that the process has removed.
  //  1. All files have at most twice the live bytes and three segments, of the largest size that a
  //     process of the life had. Where many jobs have died at once they have more, and grow by no
  //     more than two segments and twice the growth of the live bytes.
  //  2. Commands wait for some removals of files, not until all dead files are removed.
  std::string excess(const FactLog& log, std::uint64_t removals);

 private:
  std::uint64_t least_bytes_ = UINT64_MAX;  // of the files, since they have exceeded the promise
  std::uint64_t live_bytes_ = 0;            // the least since that time
  std::uint64_t largest_segment_bytes_ = 0;
  std::uint64_t written_ = 0;   // facts, at the last look
  std::uint64_t removals_ = 0;  // when commands began to wait
};

}  // namespace tubed::simulation
