#include "disk/directory_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tubed::disk {

Error error_of(std::string message, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return {.message = std::move(message), .kind = denied ? Error::Kind::denied : Error::Kind::other};
}

namespace {

Error directory_error(const std::string& path, int error) {
  const auto reason = [error]() -> std::string {
    switch (error) {
      case ENOENT:
        return "no such directory";
      case ENOTDIR:
        return "not a directory";
      case EACCES:
        return "permission denied";
      default:
        return os::error_text(error);
    }
  };
  return error_of(fmt::format("journal directory {}: {}", path, reason()), error);
}

// Only a file that this call has made is given away: the owner of the directory could have put a
// link to a file of root in its place.
os::Descriptor open_lock(int directory, const NewOwner& owner) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  os::Descriptor made(::openat(directory, kLockName, kFlags | O_CREAT | O_EXCL, kFileMode));
  if (made) give(made.number(), owner);
  if (made || errno != EEXIST) return made;
  return os::Descriptor(::openat(directory, kLockName, kFlags));
}

}  // namespace

NewOwner owner_of_new_files(int directory) {
  struct stat status {};
  if (::geteuid() != 0 || ::fstat(directory, &status) != 0 || status.st_uid == 0)
    return std::nullopt;
  return FileOwner{.user = status.st_uid, .group = status.st_gid};
}

void give(int file, const NewOwner& owner) {
  if (!owner) return;
  const int error = errno;
  [[maybe_unused]] const int given = ::fchown(file, owner->user, owner->group);
  errno = error;
}

Result<os::Descriptor> open_directory(const std::string& path) {
  os::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return directory_error(path, errno);
  return directory;
}

Result<os::Descriptor> open_new_directory(const std::string& path, bool is_part) {
  const bool made = ::mkdir(path.c_str(), kDirectoryMode) == 0;
  if (!made && errno != EEXIST) {
    return Error{
        fmt::format("journal directory {} cannot be made: {}", path, os::error_text(errno))};
  }
  auto directory = open_directory(path);
  if (!directory) return directory;
  std::error_code error;
  const bool empty = std::filesystem::is_empty(path, error);
  if (error) return directory_error(path, error.value());
  if (!empty) return Error{fmt::format("journal directory {}: not empty", path)};
  if (made) {
    const os::Descriptor parent(
        ::openat(directory->number(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent) return directory_error(path + "/..", errno);
    if (is_part) give(directory->number(), owner_of_new_files(parent.number()));
    if (::fsync(parent.number()) != 0) return directory_error(path + "/..", errno);
  }
  return directory;
}

Result<os::Descriptor> lock_directory(int directory, const std::string& path,
                                      const NewOwner& owner) {
  if (::faccessat(directory, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return directory_error(path, errno);
  }
  os::Descriptor file = open_lock(directory, owner);
  if (!file) {
    const int error = errno;
    return error_of(fmt::format("journal directory {}: cannot open its file {}: {}", path,
                                kLockName, os::error_text(error)),
                    error);
  }
  TRY(os::lock_file(file, "journal directory " + path));
  return file;
}

std::string read_note(const os::Descriptor& lock) {
  std::array<char, 64> text;
  const ssize_t bytes = ::pread(lock.number(), text.data(), text.size(), 0);
  return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
}

void write_note(const os::Descriptor& lock, std::string_view note) {
  if (::ftruncate(lock.number(), 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(lock.number(), note.data(), note.size(), 0);
}

}  // namespace tubed::disk
