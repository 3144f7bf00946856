// Signal: one uv_signal that keeps being told.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "loop/loop.h"

namespace tubed::loop {

class Signal {
 public:
  Signal(Loop& loop, int number, std::function<void()> arrived);

 private:
  std::function<void()> arrived_;
  Handle<uv_signal_t> handle_;
};

// As long as it lives, these signals end the process at once, with exit code 0: for blocking work
// that may be cut off anywhere. A Signal that was told of them before is told again afterwards.
class ExitAtSignal {
 public:
  explicit ExitAtSignal(std::initializer_list<int> numbers);
  ~ExitAtSignal();
  ExitAtSignal(const ExitAtSignal&) = delete;
  ExitAtSignal& operator=(const ExitAtSignal&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

// From here on these signals change nothing: for the end of the process, when a Signal that goes
// would give its number back to the kernel, whose default is to kill.
void ignore_signals_to_the_end(std::initializer_list<int> numbers);

// Writing to a closed connection gives an error instead of ending the process.
void ignore_broken_pipes();

}  // namespace tubed::loop
