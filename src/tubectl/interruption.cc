#include "tubectl/interruption.h"

#include <csignal>
#include <initializer_list>

namespace tubed::tubectl {
namespace {

volatile std::sig_atomic_t signalled = 0;

void note_signal(int) {
  signalled = 1;
}

}  // namespace

void stop_on_signals() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = &note_signal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

bool stop_asked() {
  return signalled != 0;
}

}  // namespace tubed::tubectl
