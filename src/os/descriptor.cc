#include "os/descriptor.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tubed::os {

namespace {

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<void> lock_file(const Descriptor& file, const std::string& subject, std::int64_t bytes) {
  struct flock lock = whole_file();
  lock.l_len = bytes;
  if (::fcntl(file.number(), F_SETLK, &lock) == 0) return {};
  if (errno != EACCES && errno != EAGAIN) {
    return Error{fmt::format("{} cannot be locked: {}", subject, error_text(errno))};
  }
  // 0 if the holder has released the lock since.
  const std::uint64_t holder = lock_holder(file);
  return Error{fmt::format("{} is in use by {}", subject,
                           holder > 0 ? fmt::format("process {}", holder) : "another process")};
}

std::uint64_t lock_holder(const Descriptor& file) {
  struct flock lock = whole_file();
  const bool held = ::fcntl(file.number(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return held && lock.l_pid > 0 ? static_cast<std::uint64_t>(lock.l_pid) : 0;
}

std::string error_text(int error) {
  std::array<char, 128> buffer;
  return ::strerror_r(error, buffer.data(), buffer.size());
}

}  // namespace tubed::os
