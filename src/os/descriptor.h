// Descriptor: owns the descriptor of a file or a directory, and closes it. Also record locks on
// files.
//
// A record lock (fcntl) belongs to the process: it does not exclude other code in the process, and
// a child does not inherit it. The kernel drops it when the process closes any descriptor of the
// file.
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

// Locks the first `bytes` of a file, or the whole file (0), without waiting. The error begins with
// `subject` and names the process that holds a lock, or the reason why the file cannot be locked.
Result<void> lock_file(const Descriptor& file, const std::string& subject, std::int64_t bytes = 0);

// Returns the id of the process that holds a lock on the file. 0: no other process holds one, or
// its holder is invisible in this pid namespace.
std::uint64_t lock_holder(const Descriptor& file);

// Returns the text of an errno value, like strerror(), but on any thread.
std::string error_text(int error);

}  // namespace tubed::os
