#include "os/secret_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/descriptor.h"

namespace tubed::os {

namespace {

Error cannot_read(const std::string& file) {
  return Error{fmt::format("{}: cannot read: {}", file, std::strerror(errno))};
}

// `forbidden`: bits of a mode with which others may use the secret. `advice`: how to clear them.
Result<Descriptor> open_secret(const std::string& file, mode_t forbidden = S_IRWXO | S_IWGRP,
                               std::string_view advice = "g-w,o=") {
  // Non-blocking: opening a named pipe must not wait.
  Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!descriptor || ::fstat(descriptor.number(), &status) != 0) return cannot_read(file);
  if (!S_ISREG(status.st_mode)) return Error{fmt::format("{}: not a file", file)};
  if ((status.st_mode & forbidden) != 0) {
    return Error{fmt::format("{}: others may use this secret (mode {:04o}): chmod {} {}", file,
                             status.st_mode & 07777, advice, file)};
  }
  return descriptor;
}

bool is_credential(std::string_view file) {
  const char* const directory = std::getenv("CREDENTIALS_DIRECTORY");
  const std::string_view folder = directory == nullptr ? "" : directory;
  return !folder.empty() && file.starts_with(folder) && file.substr(folder.size()).starts_with('/');
}

Result<std::string> read_all(const std::string& file, const Descriptor& descriptor,
                             std::size_t most) {
  std::string text(most + 1, '\0');
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t got = ::read(descriptor.number(), text.data() + bytes, text.size() - bytes);
    if (got < 0) return cannot_read(file);
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  if (bytes > most) return Error{fmt::format("{}: larger than {} bytes", file, most)};
  text.resize(bytes);
  return text;
}

}  // namespace

Result<void> check_secret(const std::string& file) {
  TRY(open_secret(file));
  return {};
}

Result<std::string> read_secret(const std::string& file, std::size_t most) {
  const Descriptor descriptor = TRY(open_secret(file));
  return read_all(file, descriptor, most);
}

Result<std::string> read_own_secret(const std::string& file, std::size_t most) {
  if (is_credential(file)) return read_secret(file, most);
  const Descriptor descriptor = TRY(open_secret(file, S_IRWXG | S_IRWXO, "go="));
  return read_all(file, descriptor, most);
}

}  // namespace tubed::os
