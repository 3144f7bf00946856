// libuv has no function that starts its pool or reports whether it has started. So the process
// first creates and ends as many threads as the pool has, all alive at the same time; then a task
// without effect starts the pool. An abort at that moment ends the process with a line.
#include "loop/thread_pool.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <latch>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/planted.h"
#include "loop/loop.h"
#include "os/descriptor.h"
#include "os/process.h"

namespace tubed::loop {

namespace {

constexpr std::string_view kAborted =
    "tubed: no threads can be started for the work on files: see the limits of processes (ulimit "
    "-u, TasksMax= and pids.max) and seccomp filters\n";

// Reads the variable as libuv does. [threadpool.c]
unsigned pool_threads() {
  constexpr unsigned kDefault = 4;
  constexpr unsigned kMost = 1024;
  const char* const given = std::getenv("UV_THREADPOOL_SIZE");
  const auto wanted = given == nullptr ? kDefault : static_cast<unsigned>(std::atoi(given));
  return std::clamp(wanted, 1U, kMost);
}

Result<void> expect_threads(unsigned count) {
  std::latch end(1);
  std::vector<pthread_t> threads;
  int error = 0;
  while (error == 0 && threads.size() < count) {
    pthread_t thread{};
    error = ::pthread_create(
        &thread, nullptr,
        [](void* argument) -> void* {
          static_cast<std::latch*>(argument)->wait();
          return nullptr;
        },
        &end);
    if (error == 0) threads.push_back(thread);
  }
  end.count_down();
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  if (error == 0) return {};
  return Error{fmt::format(
      "{} threads are needed for the work on files, and only {} can be started: {}; see the limits "
      "of processes (ulimit -u, TasksMax= and pids.max) and seccomp filters",
      count, threads.size(), os::error_text(error))};
}

// While it exists, an abort means that no thread could be created.
class AbortMessage {
 public:
  AbortMessage() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      [[maybe_unused]] const auto written =
          ::write(STDERR_FILENO, kAborted.data(), kAborted.size());
      ::_exit(os::kExitNoResources);
    };
    ::sigaction(SIGABRT, &action, &before_);
  }
  ~AbortMessage() { ::sigaction(SIGABRT, &before_, nullptr); }
  AbortMessage(const AbortMessage&) = delete;
  AbortMessage& operator=(const AbortMessage&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

Result<void> start_thread_pool() {
  if (TUBED_PLANTED(thread_pool_starts_late)) return {};
  TRY(expect_threads(pool_threads()));
  Loop loop;
  uv_work_t work{};
  {
    const AbortMessage message;
    const int queued = uv_queue_work(
        loop.uv(), &work, [](uv_work_t*) {}, [](uv_work_t*, int) {});
    TUBED_ASSERT(queued == 0);
  }
  loop.run();
  return {};
}

}  // namespace tubed::loop
