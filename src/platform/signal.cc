#include "platform/signal.h"

#include <unistd.h>

namespace tubed::platform {

Signal::Signal(Loop& loop, int number, std::function<void()> arrived)
    : arrived_(std::move(arrived)), handle_(this) {
  uv_signal_init(loop.uv(), handle_.get());
  uv_signal_start(
      handle_.get(), [](uv_signal_t* signal, int) { owner_of<Signal>(signal).arrived_(); }, number);
}

ExitAtSignal::ExitAtSignal(std::initializer_list<int> numbers) {
  struct sigaction exit {};
  exit.sa_handler = [](int) { ::_exit(0); };
  for (const int number : numbers) {
    struct sigaction before {};
    ::sigaction(number, &exit, &before);
    before_.emplace_back(number, before);
  }
}

ExitAtSignal::~ExitAtSignal() {
  for (const auto& [number, before] : before_) ::sigaction(number, &before, nullptr);
}

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace tubed::platform
