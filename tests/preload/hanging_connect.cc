// hanging_connect: a library to preload in which connect() hangs.
//
// $TUBED_HANG names a file. While the file exists, connect() does not return, and creates a file of
// that name with the suffix `.begun`.
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

extern "C" int connect(int file, const sockaddr* address, socklen_t size) {
  if (const char* path = std::getenv("TUBED_HANG"); path != nullptr && ::access(path, F_OK) == 0) {
    ::close(::open((std::string(path) + ".begun").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    while (::access(path, F_OK) == 0) ::usleep(1000);
  }
  void* const found = ::dlsym(RTLD_NEXT, "connect");
  if (found == nullptr) std::abort();
  int (*next)(int, const sockaddr*, socklen_t) = nullptr;
  std::memcpy(&next, &found, sizeof next);
  return next(file, address, size);
}
