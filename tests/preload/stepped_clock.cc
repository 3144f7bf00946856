// stepped_clock: a library to preload that steps the clocks of one process.
//
// $TUBED_CLOCK_DIRECTORY names a directory. Its file `offset` holds the number of seconds by which
// CLOCK_REALTIME is ahead. Its FIFO `steps` replaces the timer through which the kernel reports a
// step: data written to it is such a report. While its file `monotonic` exists, the monotonic
// clocks are stopped at the number of seconds in it. Waits in the kernel use the real clock.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
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

// Set before main(); empty before that.
char offset_file[4096];
char monotonic_file[4096];

[[gnu::constructor]] void set_files() {
  in_directory("offset").copy(offset_file, sizeof offset_file - 1);
  in_directory("monotonic").copy(monotonic_file, sizeof monotonic_file - 1);
}

// Returns the number in this file; 0 without a file. The allocator of a sanitizer reads the clock
// while it holds its locks, so this function neither allocates nor calls a function that a
// sanitizer replaces.
time_t seconds_in(const char* name) {
  const int before = errno;
  time_t seconds = 0;
  const long file = ::syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    char text[32];
    const long length = ::syscall(SYS_read, file, text, sizeof text);
    ::syscall(SYS_close, file);
    const bool negative = length > 0 && text[0] == '-';
    for (long i = negative ? 1 : 0; i < length && text[i] >= '0' && text[i] <= '9'; ++i)
      seconds = 10 * seconds + (text[i] - '0');
    if (negative) seconds = -seconds;
  }
  errno = before;
  return seconds;
}

int steps = -1;

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result != 0) return result;
  if (clock == CLOCK_REALTIME) time->tv_sec += seconds_in(offset_file);
  if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME) {
    if (const time_t fixed = seconds_in(monotonic_file)) *time = {.tv_sec = fixed, .tv_nsec = 0};
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
