// stopped_clock: a library to preload that stops the clocks of one process.
//
// $TUBED_STOPPED_CLOCK names a file with a std::int64_t: the nanoseconds by which the clocks have
// been advanced. The clocks begin at a whole millisecond. Kernel timeouts, such as in epoll_wait,
// pass in real time, so the process sees an advanced clock at its next event.
#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMillisecond;

// Uses the system call, because a sanitizer replaces clock_gettime() and its allocator calls it.
int read_clock(clockid_t clock, timespec* time) {
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

std::int64_t advanced() {
  static const std::int64_t* const shared = [] {
    const char* name = std::getenv("TUBED_STOPPED_CLOCK");
    const int file = name == nullptr ? -1 : ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) std::abort();
    void* const place = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) std::abort();
    ::close(file);
    return static_cast<const std::int64_t*>(place);
  }();
  return __atomic_load_n(shared, __ATOMIC_ACQUIRE);
}

std::int64_t begin_of(clockid_t clock) {
  timespec time{};
  if (read_clock(clock, &time) != 0) std::abort();
  return time.tv_sec * kSecond + time.tv_nsec / kMillisecond * kMillisecond;
}

std::int64_t wall_time() {
  static const std::int64_t begin = begin_of(CLOCK_REALTIME);
  return begin + advanced();
}

std::int64_t monotonic_time() {
  static const std::int64_t begin = begin_of(CLOCK_MONOTONIC);
  return begin + advanced();
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  std::int64_t now = 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      now = wall_time();
      break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      now = monotonic_time();
      break;
    default:
      return read_clock(clock, time);
  }
  *time = {.tv_sec = now / kSecond, .tv_nsec = now % kSecond};
  return 0;
}

int gettimeofday(timeval* time, void* /*zone*/) {
  const std::int64_t now = wall_time();
  *time = {.tv_sec = now / kSecond, .tv_usec = now % kSecond / 1'000};
  return 0;
}

time_t time(time_t* time) {
  const time_t now = wall_time() / kSecond;
  if (time != nullptr) *time = now;
  return now;
}

}  // extern "C"
