// Descriptor: an owned descriptor of a file or a directory, and the lock on a whole file.
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

// Takes the record lock (fcntl) of a whole file for this process, for as long as any descriptor of
// the file that this process has stays open. The error says what is wrong with `what`: who has it,
// or why it cannot be locked.
Result<void> lock_file(const Descriptor& file, const std::string& what);

// Who has that lock; 0: nobody, or somebody who has no number in this pid namespace.
std::uint64_t lock_holder(const Descriptor& file);

// strerror(), for any thread.
std::string error_text(int error);

}  // namespace tubed::os
