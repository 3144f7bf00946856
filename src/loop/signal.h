// Signals of the process: delivered in the loop, fatal during blocking work, or ignored.
#pragma once

#include <csignal>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "loop/loop.h"

namespace tubed::loop {

// Calls `arrived` in the loop each time the signal `number` arrives; replaces the kernel's default
// action.
class Signal {
 public:
  Signal(Loop& loop, int number, std::function<void()> arrived);

 private:
  std::function<void()> arrived_;
  Handle<uv_signal_t> handle_;
};

// While this object exists, these signals end the process at once with exit code 0: for blocking
// work that may be interrupted at any point. Afterwards the previous actions are restored,
// including a Signal's.
class ExitAtSignal {
 public:
  explicit ExitAtSignal(std::initializer_list<int> numbers);
  ~ExitAtSignal();
  ExitAtSignal(const ExitAtSignal&) = delete;
  ExitAtSignal& operator=(const ExitAtSignal&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

// Ignores these signals, at most 8, until the process exits. For the end of the process: destroying
// a Signal restores the kernel's default action, which would kill the process.
void ignore_signals_until_exit(std::initializer_list<int> numbers);

// Makes writes to a closed connection or beyond the limit on file sizes return an error, instead of
// ending the process with SIGPIPE or SIGXFSZ.
void ignore_broken_pipes();

}  // namespace tubed::loop
