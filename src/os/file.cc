#include "os/file.h"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/planted.h"
#include "os/descriptor.h"

namespace tubed::os {

namespace {

constexpr mode_t kFileMode = 0644;
constexpr std::size_t kPieceBytes = 64 * 1024;

Error file_error(const std::string& path, int error) {
  return {fmt::format("{}: {}", path, error_text(error))};
}

// True if a rename to `path` would replace a device, a pipe, a socket or a link.
bool is_no_regular_file(const std::string& path) {
  struct stat status {};
  return !TUBED_PLANTED(replaces_any_file) && ::lstat(path.c_str(), &status) == 0 &&
         !S_ISREG(status.st_mode);
}

// Returns 0 or an errno value.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return file_error(path, errno);
  std::string contents;
  std::array<char, kPieceBytes> piece;
  while (true) {
    const ssize_t got = ::read(file.number(), piece.data(), piece.size());
    if (got == 0) return contents;
    if (got > 0) {
      contents.append(piece.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      return file_error(path, errno);
    }
  }
}

Result<void> replace_file(const std::string& path, std::string_view contents) {
  if (is_no_regular_file(path)) return Error{fmt::format("{}: not a regular file", path)};
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  const Descriptor file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file) return file_error(beside, errno);
  int error = write_all(file.number(), contents);
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(beside.c_str());
  return file_error(path, error);
}

Result<void> write_standard_output(std::string_view text) {
  const int error = write_all(kStandardOutput, text);
  if (error == 0) return {};
  return file_error("standard output", error);
}

}  // namespace tubed::os
