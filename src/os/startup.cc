#include "os/startup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "base/planted.h"

namespace tubed::os {

namespace {

constexpr std::array kOfTerminals = {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};

}  // namespace

void clean_start() {
  occupy_standard_descriptors();
  reset_signals();
}

// open() takes the lowest free number, and all numbers below `number` are in use.
void occupy_standard_descriptors() {
  if (TUBED_PLANTED(standard_descriptors_stay_closed)) return;
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number) return;
  }
}

void reset_signals() {
  if (TUBED_PLANTED(inherited_signals_are_kept)) return;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    // Skips the two signals that glibc keeps for itself.
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_IGN) continue;
    if (std::ranges::count(kOfTerminals, number) == 0) std::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace tubed::os
