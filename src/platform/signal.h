// Signal: one uv_signal that keeps being told.
#pragma once

#include <csignal>
#include <functional>

#include "platform/loop.h"

namespace tubed::platform {

class Signal {
 public:
  Signal(Loop& loop, int number, std::function<void()> arrived);

 private:
  std::function<void()> arrived_;
  Handle<uv_signal_t> handle_;
};

// Writing to a closed connection gives an error instead of ending the process.
void ignore_broken_pipes();

}  // namespace tubed::platform
