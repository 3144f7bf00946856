#include "os/pid_file.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/planted.h"

namespace tubed::os {

namespace {

constexpr mode_t kMode = 0644;

// The position of the flag. The byte is locked, like all bytes before it, unless the flag is set.
constexpr std::int64_t kFlag = std::int64_t{1} << 20;
// Locked by a server without a flag (2.0.0), which locks the whole file.
constexpr std::int64_t kNoFlag = kFlag + 1;

struct flock byte_lock(std::int64_t byte, int type) {
  struct flock lock {};
  lock.l_type = static_cast<decltype(lock.l_type)>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// True if another process has locked the byte. No value: the kernel does not say.
std::optional<bool> is_locked(const Descriptor& file, std::int64_t byte) {
  struct flock lock = byte_lock(byte, F_WRLCK);
  if (::fcntl(file.number(), F_GETLK, &lock) != 0) return {};
  return lock.l_type != F_UNLCK;
}

Error pid_file_error(const std::string& path, int error) {
  return {fmt::format("pid_file {}: {}", path, error_text(error))};
}

// False for a device or a pipe, whose path must not be removed at the end.
bool is_regular(const Descriptor& file) {
  struct stat status {};
  return TUBED_PLANTED(replaces_any_file) ||
         (::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode));
}

// True if `path` leads to this file.
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
    TRY(lock_file(file, "pid_file " + path, kNoFlag));
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

void PidFile::set_flag(bool set) {
  struct flock lock = byte_lock(kFlag, set ? F_UNLCK : F_WRLCK);
  ::fcntl(file_.number(), F_SETLK, &lock);
}

void PidFile::close_with(const std::string& last_words) {
  // If the path cannot be removed, as in another user's directory, the file must lose the process
  // id.
  if (is_at(path_, file_) && ::unlink(path_.c_str()) != 0) {
    [[maybe_unused]] const int cut = ::ftruncate(file_.number(), 0);
    [[maybe_unused]] const auto written = ::pwrite(file_.number(), "\n", 1, 0);
  }
  struct stat file {};
  if (::fstat(file_.number(), &file) != 0) return;
  const std::string line = last_words + '\n';
  // Readers accept a missing line.
  [[maybe_unused]] const auto written =
      ::pwrite(file_.number(), line.data(), line.size(), file.st_size);
}

Result<OtherPidFile> OtherPidFile::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return pid_file_error(path, errno);
  const std::uint64_t holder = lock_holder(file);
  if (holder == 0) return Error{fmt::format("pid_file {}: no server keeps it", path)};
  const bool has_flag =
      !is_locked(file, kNoFlag).value_or(true) || TUBED_PLANTED(each_pid_file_has_a_flag);
  return OtherPidFile(std::move(file), holder, has_flag);
}

std::optional<bool> OtherPidFile::flag() const {
  const auto locked = is_locked(file_, kFlag);
  if (!locked || (!*locked && lock_holder(file_) != process_)) return {};
  return !*locked;
}

std::string OtherPidFile::last_words() const {
  std::array<char, 4096> bytes;
  const ssize_t size = ::pread(file_.number(), bytes.data(), bytes.size(), 0);
  if (size <= 0) return "";
  const std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  const std::size_t begin = text.find('\n');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1));
}

}  // namespace tubed::os
