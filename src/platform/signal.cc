#include "platform/signal.h"

namespace tubed::platform {

Signal::Signal(Loop& loop, int number, std::function<void()> arrived)
    : arrived_(std::move(arrived)), handle_(this) {
  uv_signal_init(loop.uv(), handle_.get());
  uv_signal_start(
      handle_.get(), [](uv_signal_t* signal, int) { owner_of<Signal>(signal).arrived_(); }, number);
}

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace tubed::platform
