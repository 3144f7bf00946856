#include "os/secret_file.h"

#include <cerrno>
#include <cstring>

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

Result<Descriptor> open_secret(const std::string& file) {
  // Non-blocking: opening a named pipe must not wait.
  Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!descriptor || ::fstat(descriptor.number(), &status) != 0) return cannot_read(file);
  if (!S_ISREG(status.st_mode)) return Error{fmt::format("{}: not a file", file)};
  if ((status.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return Error{fmt::format("{}: others may use this secret (mode {:04o}): chmod g-w,o= {}", file,
                             status.st_mode & 07777, file)};
  }
  return descriptor;
}

}  // namespace

Result<void> check_secret(const std::string& file) {
  TRY(open_secret(file));
  return {};
}

Result<std::string> read_secret(const std::string& file, std::size_t most) {
  const Descriptor descriptor = TRY(open_secret(file));
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

}  // namespace tubed::os
