// faulty_disk: a library to preload that makes a disk fail, for the files of a journal only.
//
// $TUBED_FAULT names a file. While it is there its text says what goes wrong:
//   sync 5        fdatasync, fsync and writes with RWF_DSYNC fail with that errno
//   write 5       likewise pwrite, pwritev and pwritev2
//   allocate 5    likewise fallocate
//   sync hang     they wait until the text says something else
//   write short   a few bytes are taken at a time
// Nothing else is touched, so that whatever the daemon does about it is its own doing.
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

bool is_of_journal(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  if (length <= 0) return false;
  const std::string name(path, static_cast<std::size_t>(length));
  return name.compare(name.rfind('/') + 1, 8, "journal.") == 0;
}

// What the file says now; nothing without one.
std::string fault_now() {
  const char* path = std::getenv("TUBED_FAULT");
  if (path == nullptr) return {};
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[64];
  const ssize_t length = ::read(file, text, sizeof text);
  ::close(file);
  return {text, length > 0 ? static_cast<std::size_t>(length) : 0};
}

// What goes wrong with this call on this file, behind its word; nothing: it goes well. Returns
// when it is known, which with `hang` is not soon.
std::string fault_of(const std::string& word, int file) {
  if (!is_of_journal(file)) return {};
  for (;;) {
    const std::string fault = fault_now();
    if (fault.compare(0, word.size() + 1, word + " ") != 0) return {};
    if (fault.compare(word.size() + 1, 4, "hang") != 0) return fault.substr(word.size() + 1);
    ::usleep(1000);
  }
}

// True: errno is set, and the call is to fail.
bool fails(const std::string& word, int file) {
  const std::string fault = fault_of(word, file);
  const int error = std::atoi(fault.c_str());
  if (error != 0) errno = error;
  return error != 0;
}

template <class Function>
Function* next(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  Function* function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

ssize_t write_pieces(const char* name, int file, const iovec* pieces, int count, off_t offset) {
  const std::string fault = fault_of("write", file);
  const auto real = next<ssize_t(int, const iovec*, int, off_t)>(name);
  if (fault.compare(0, 5, "short") == 0) {
    // The first piece that is not empty, cut to what no record ends at.
    while (count > 1 && pieces->iov_len == 0) ++pieces, --count;
    const iovec cut = {pieces->iov_base, pieces->iov_len < 37 ? pieces->iov_len : 37};
    return real(file, &cut, 1, offset);
  }
  const int error = std::atoi(fault.c_str());
  if (error == 0) return real(file, pieces, count, offset);
  errno = error;
  return -1;
}

// A write that is to be on the disk is a write, and then a sync of it.
ssize_t write_and_sync(const char* name, int file, const iovec* pieces, int count, off_t offset,
                       int flags) {
  const ssize_t result = write_pieces(name, file, pieces, count, offset);
  if (result <= 0 || (flags & RWF_DSYNC) == 0) return result;
  const bool failed = fails("sync", file) || next<int(int)>("fdatasync")(file) != 0;
  return failed ? -1 : result;
}

}  // namespace

extern "C" {

int fdatasync(int file) {
  return fails("sync", file) ? -1 : next<int(int)>("fdatasync")(file);
}

int fsync(int file) {
  return fails("sync", file) ? -1 : next<int(int)>("fsync")(file);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (fails("write", file)) return -1;
  return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(file, data, bytes, offset);
}

ssize_t pwritev(int file, const iovec* pieces, int count, off_t offset) {
  return write_pieces("pwritev", file, pieces, count, offset);
}

ssize_t pwritev64(int file, const iovec* pieces, int count, off64_t offset) {
  return write_pieces("pwritev64", file, pieces, count, offset);
}

ssize_t pwritev2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  return write_and_sync("pwritev", file, pieces, count, offset, flags);
}

ssize_t pwritev64v2(int file, const iovec* pieces, int count, off64_t offset, int flags) {
  return write_and_sync("pwritev64", file, pieces, count, offset, flags);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (fails("allocate", file)) return -1;
  return next<int(int, int, off_t, off_t)>("fallocate")(file, mode, offset, bytes);
}

int fallocate64(int file, int mode, off64_t offset, off64_t bytes) {
  if (fails("allocate", file)) return -1;
  return next<int(int, int, off64_t, off64_t)>("fallocate64")(file, mode, offset, bytes);
}

}  // extern "C"
