// Descriptor: owns a descriptor of a file or a directory, and closes it. Also: record locks on
// files.
//
// A record lock (fcntl) belongs to the process. The kernel drops it when the process closes any
// descriptor of that file, it does not exclude the same process, and a child does not inherit it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace tubed::os {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_ = -1;
};

// Locks the first `bytes` of a file, or a whole file (0), without waiting. The error begins with
// `subject` and names the process that holds a lock on it, or the reason why it cannot be locked.
Result<void> lock_file(const Descriptor& file, const std::string& subject, std::int64_t bytes = 0);

// The id of the process that holds a lock on the file. 0: the file is not locked by another
// process, or by one that is invisible in this pid namespace.
std::uint64_t lock_holder(const Descriptor& file);

// The text of an errno value, like strerror(), but for any thread.
std::string error_text(int error);

}  // namespace tubed::os
