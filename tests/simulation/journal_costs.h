// JournalCosts: counts of a process's journal, each with a bound that holds on any machine.
#pragma once

#include <cstdint>
#include <string>

#include "facts/fact_log.h"

namespace tubed::simulation {

class JournalCosts {
 public:
  // Each function returns a line about the count that exceeds its bound, or an empty text.

  // A process has recovered; the replay of `facts` facts took `steps` steps.
  static std::string excess_of_replay(std::uint64_t facts, std::uint64_t steps);
  void begin_process() {
    const std::uint64_t largest = largest_segment_bytes_;
    *this = {};
    largest_segment_bytes_ = largest;
  }
  // Called now and then. `removals` is the number of files that the process has removed.
  //  1. All files have at most twice the live bytes plus three segments, of the largest size that a
  //     process of the life had. If many jobs have died at once they have more, and grow by at most
  //     two segments plus twice the growth of the live bytes.
  //  2. Commands wait for some removals of files, not until all dead files are removed.
  std::string excess(const FactLog& log, std::uint64_t removals);

 private:
  std::uint64_t least_bytes_ = UINT64_MAX;  // of the files, since they exceeded the promise
  std::uint64_t live_bytes_ = 0;            // the least since then
  std::uint64_t largest_segment_bytes_ = 0;
  std::uint64_t written_ = 0;   // facts, at the last check
  std::uint64_t removals_ = 0;  // when commands began to wait
};

}  // namespace tubed::simulation
