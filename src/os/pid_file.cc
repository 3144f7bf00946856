#include "os/pid_file.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tubed::os {

namespace {

constexpr mode_t kMode = 0644;

Error pid_file_error(const std::string& path, int error) {
  return {fmt::format("pid_file {}: {}", path, error_text(error))};
}

// False: of a device or a pipe, whose path must not be removed in the end.
bool is_regular(const Descriptor& file) {
  struct stat status {};
  return TUBED_PLANTED(replaces_any_file) ||
         (::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode));
}

// True if the path leads to this file.
bool is_at(const std::string& path, const Descriptor& file) {
  struct stat ours {};
  struct stat there {};
  return ::fstat(file.number(), &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

}  // namespace

Result<std::unique_ptr<PidFile>> PidFile::open(const std::string& path) {
  Descriptor file;
  do {
    file = Descriptor(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
    if (!file) return pid_file_error(path, errno);
    if (!is_regular(file)) return Error{fmt::format("pid_file {}: not a regular file", path)};
    TRY(lock_file(file, "pid_file " + path));
    // The previous holder may have removed the path before it released the lock.
  } while (!is_at(path, file));
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.number(), 0) != 0 ||
      ::pwrite(file.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return pid_file_error(path, errno);
  }
  return std::unique_ptr<PidFile>(new PidFile(path, std::move(file)));
}

PidFile::~PidFile() {
  if (is_at(path_, file_)) ::unlink(path_.c_str());
}

Result<std::uint64_t> process_of_pid_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return pid_file_error(path, errno);
  const std::uint64_t holder = lock_holder(file);
  if (holder == 0) return Error{fmt::format("pid_file {}: no server keeps it", path)};
  return holder;
}

}  // namespace tubed::os
