#include "os/startup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tubed::os_test {

namespace {

// Runs `check` in a child process, because it changes state of the whole process.
bool holds_in_a_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct stat status_of(int descriptor) {
  struct stat status {};
  ::fstat(descriptor, &status);
  return status;
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Closes descriptor `number` if its bit is set in `closed`.
bool takes_no_standard_number(unsigned closed) {
  std::array<struct stat, 3> before{};
  for (int number = 0; number < 3; ++number) {
    before[static_cast<std::size_t>(number)] = status_of(number);
    if ((closed >> number & 1) != 0) ::close(number);
  }
  os::occupy_standard_descriptors();
  struct stat null {};
  ::stat("/dev/null", &null);
  char byte = 'x';
  for (int number = 0; number < 3; ++number) {
    const auto now = status_of(number);
    if ((closed >> number & 1) == 0) {
      if (!is_same(now, before[static_cast<std::size_t>(number)])) return false;
      continue;
    }
    // Reading or writing still fails, as on a closed descriptor.
    const ssize_t moved = number == 0 ? ::read(number, &byte, 1) : ::write(number, &byte, 1);
    if (!is_same(now, null) || moved != -1 || errno != EBADF) return false;
  }
  return ::open("/dev/null", O_RDONLY) > STDERR_FILENO;
}

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

TEST_CASE("a closed standard descriptor becomes /dev/null, and an open one stays") {
  for (unsigned closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    CHECK(holds_in_a_child([closed] { return takes_no_standard_number(closed); }));
  }
}

TEST_CASE("ignored and blocked signals of the parent are neither") {
  CHECK(holds_in_a_child([] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_IGN);
    os::reset_signals();
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    constexpr std::array kOfTerminals = {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    for (int number = 1; number < NSIG; ++number) {
      const bool stays = std::ranges::count(kOfTerminals, number) > 0;
      if (is_ignored(number) != stays || sigismember(&mask, number) == 1) return false;
    }
    return true;
  }));
}

TEST_CASE("signal handlers are kept") {
  CHECK(holds_in_a_child([] {
    std::signal(SIGUSR1, [](int) {});
    os::reset_signals();
    return std::signal(SIGUSR1, SIG_DFL) != SIG_DFL;
  }));
}

}  // namespace tubed::os_test
