// few_watches: a library to preload that lets a process have only few watches of inotify, as at the
// limits of its user. $TUBED_WATCHES is the number of calls of inotify_add_watch() that succeed; if
// it is negative, the process has no inotify at all.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <sys/inotify.h>

namespace {

std::atomic<int> made = 0;

int most_watches() {
  const char* const most = std::getenv("TUBED_WATCHES");
  return most == nullptr ? 0 : std::atoi(most);
}

template <class Function>
Function next_of(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  Function next = nullptr;
  std::memcpy(&next, &found, sizeof next);
  return next;
}

}  // namespace

extern "C" int inotify_init1(int flags) {
  if (most_watches() < 0) {
    errno = EMFILE;
    return -1;
  }
  return next_of<int (*)(int)>("inotify_init1")(flags);
}

extern "C" int inotify_add_watch(int descriptor, const char* path, std::uint32_t mask) {
  if (made++ >= most_watches()) {
    errno = ENOSPC;
    return -1;
  }
  return next_of<int (*)(int, const char*, std::uint32_t)>("inotify_add_watch")(descriptor, path,
                                                                                mask);
}
