// few_threads: a library to preload that lets a process create only few threads, as at a limit of
// processes or under a seccomp filter. $TUBED_THREADS is the number of calls of pthread_create()
// that succeed.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <pthread.h>

namespace {

std::atomic<int> made = 0;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  const char* const most = std::getenv("TUBED_THREADS");
  if (most != nullptr && made++ >= std::atoi(most)) return EAGAIN;
  void* const found = ::dlsym(RTLD_NEXT, "pthread_create");
  if (found == nullptr) std::abort();
  int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
  std::memcpy(&next, &found, sizeof next);
  return next(thread, attributes, start, argument);
}
