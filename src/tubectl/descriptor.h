// Descriptor: an owned descriptor of the operating system.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tubed::tubectl {

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

// What was tried, and what errno says of it.
Error system_error(std::string attempt);

}  // namespace tubed::tubectl
