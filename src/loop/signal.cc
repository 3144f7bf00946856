#include "loop/signal.h"

#include <array>

#include <unistd.h>

#include "base/assert.h"
#include "base/planted.h"

namespace tubed::loop {

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

void ignore_signals_until_exit(std::initializer_list<int> numbers) {
  // libuv restores the default action of a signal when its last handle is closed, so these handles
  // are never closed.
  static uv_loop_t loop;
  static std::array<uv_signal_t, 8> handles;
  TUBED_ASSERT(numbers.size() <= handles.size());
  TUBED_ASSERT(uv_loop_init(&loop) == 0);
  auto handle = handles.begin();
  for (const int number : numbers) {
    uv_signal_init(&loop, &*handle);
    uv_signal_start(
        &*handle++, [](uv_signal_t*, int) {}, number);
  }
}

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
  if (!TUBED_PLANTED(large_logs_end_the_process)) std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace tubed::loop
