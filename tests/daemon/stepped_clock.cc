// stepped_clock: a library to preload that steps the clocks of one process.
//
// $TUBED_CLOCK_DIRECTORY names a directory. Its file `offset` holds the number of seconds by which
// CLOCK_REALTIME is ahead. Its FIFO `steps` replaces the timer through which the kernel reports a
// step: data written to it is such a report. While its file `monotonic` exists, the monotonic
// clocks stand still at the number of seconds that it holds. Waits in the kernel keep to the real
// clock.
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

namespace {

template <class Function>
Function* next(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  Function* function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

std::string in_directory(const char* name) {
  const char* directory = std::getenv("TUBED_CLOCK_DIRECTORY");
  if (directory == nullptr) std::abort();
  return std::string(directory) + "/" + name;
}

// The number in this file; 0 without a file.
time_t seconds_in(const char* name) {
  const int file = ::open(in_directory(name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32] = {};
  [[maybe_unused]] const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  return std::atol(text);
}

int steps = -1;

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto real = next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (result != 0) return result;
  if (clock == CLOCK_REALTIME) time->tv_sec += seconds_in("offset");
  if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME) {
    if (const time_t fixed = seconds_in("monotonic")) *time = {.tv_sec = fixed, .tv_nsec = 0};
  }
  return result;
}

int timerfd_create(int clock, int flags) {
  if (clock != CLOCK_REALTIME) return next<int(int, int)>("timerfd_create")(clock, flags);
  return steps = ::open(in_directory("steps").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int timerfd_settime(int timer, int flags, const itimerspec* value, itimerspec* before) {
  if (timer == steps) return 0;
  const auto real = next<int(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
  return real(timer, flags, value, before);
}

}  // extern "C"
