// Plays a transcript on a driver.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/wire/driver.h"
#include "tests/wire/transcript.h"

namespace tubed::wire {

struct Outcome {
  std::vector<std::string> failures;  // each `file:line: CLIENT expected X got Y`
  std::size_t exchanges = 0;          // pieces that the transcript sent

  bool passed() const { return failures.empty(); }
};

// Plays it to its end, or to the first answer that does not come at all. After a wrong line it goes
// on with the next, so that a table of lines tells all its wrong rows at once.
Outcome play(const Transcript& transcript, Driver& driver);

}  // namespace tubed::wire
