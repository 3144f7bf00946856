// Plays a transcript on a driver.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "tests/wire/driver.h"
#include "tests/wire/transcript.h"

namespace tubed::wire {

struct PlayResult {
  std::vector<std::string> failures;  // each `file:line: CLIENT expected X got Y`
  std::size_t exchanges = 0;          // number of pieces sent

  bool passed() const { return failures.empty(); }
};

// Plays a transcript to its end or to the first reply that does not arrive. After a wrong line it
// checks the next line, so a table of lines reports all its wrong rows at once.
PlayResult play(const Transcript& transcript, Driver& driver);

}  // namespace tubed::wire
