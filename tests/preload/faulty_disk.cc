// faulty_disk: a library to preload that makes a disk fail, but only for the files of a journal and
// of a raft log.
//
// $TUBED_FAULT names a file. While the file exists, its text is the fault:
//   sync 5              fdatasync, fsync and the sync of writes with RWF_DSYNC fail with errno 5
//   write 5             pwrite, pwritev and pwritev2 fail
//   allocate 5          fallocate fails
//   synced-write 28     the sync of a write with RWF_DSYNC fails, other syncs succeed
//   truncate 28         ftruncate fails
//   unlink 28           unlinkat fails
//   rename 28           renameat2 fails
//   sync-directory 28   fsync of a directory fails
//   sync hang           syncs wait until the text changes
//   write short         each write takes at most 37 bytes
// All other calls and files are unaffected.
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

bool is_journal_name(const std::string& name) {
  return name.compare(0, 8, "journal.") == 0 || name.compare(0, 5, "raft.") == 0;
}

bool is_of_journal(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  if (length <= 0) return false;
  const std::string name(path, static_cast<std::size_t>(length));
  return is_journal_name(name.substr(name.rfind('/') + 1));
}

// The text of the file; empty if it does not exist.
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

// Returns the fault of the calls named by `word`, without the word; empty if they succeed. With
// `hang` it returns only after the text has changed.
std::string fault_of(const std::string& word) {
  for (;;) {
    const std::string fault = fault_now();
    if (fault.compare(0, word.size() + 1, word + " ") != 0) return {};
    if (fault.compare(word.size() + 1, 4, "hang") != 0) return fault.substr(word.size() + 1);
    ::usleep(1000);
  }
}

std::string fault_of(const std::string& word, int file) {
  return is_of_journal(file) ? fault_of(word) : std::string();
}

bool is_directory(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
}

// Sets errno and returns true if the call must fail.
bool fails_with(const std::string& fault) {
  const int error = std::atoi(fault.c_str());
  if (error != 0) errno = error;
  return error != 0;
}

bool fails(const std::string& word, int file) {
  return fails_with(fault_of(word, file));
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
    // The first piece that is not empty, cut to 37 bytes, where no record ends.
    while (count > 1 && pieces->iov_len == 0) ++pieces, --count;
    const iovec cut = {pieces->iov_base, pieces->iov_len < 37 ? pieces->iov_len : 37};
    return real(file, &cut, 1, offset);
  }
  const int error = std::atoi(fault.c_str());
  if (error == 0) return real(file, pieces, count, offset);
  errno = error;
  return -1;
}

// A write with RWF_DSYNC is carried out as a write and a sync, which fail separately.
ssize_t write_and_sync(const char* name, int file, const iovec* pieces, int count, off_t offset,
                       int flags) {
  const ssize_t result = write_pieces(name, file, pieces, count, offset);
  if (result <= 0 || (flags & RWF_DSYNC) == 0) return result;
  const bool failed =
      fails("sync", file) || fails("synced-write", file) || next<int(int)>("fdatasync")(file) != 0;
  return failed ? -1 : result;
}

}  // namespace

extern "C" {

int fdatasync(int file) {
  return fails("sync", file) ? -1 : next<int(int)>("fdatasync")(file);
}

int fsync(int file) {
  if (is_directory(file) && fails_with(fault_of("sync-directory"))) return -1;
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

int ftruncate(int file, off_t bytes) {
  return fails("truncate", file) ? -1 : next<int(int, off_t)>("ftruncate")(file, bytes);
}

int unlinkat(int folder, const char* name, int flags) {
  if (is_journal_name(name) && fails_with(fault_of("unlink"))) return -1;
  return next<int(int, const char*, int)>("unlinkat")(folder, name, flags);
}

int renameat2(int folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (is_journal_name(from) && fails_with(fault_of("rename"))) return -1;
  return next<int(int, const char*, int, const char*, unsigned)>("renameat2")(folder, from,
                                                                              to_folder, to, flags);
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
