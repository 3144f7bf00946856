// Result<T>: a value, or why there is none. For errors of the environment (files, sockets,
// configuration); a bug is an assertion, a client's mistake is a protocol reply.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace tubed {

// One line for the operator: what was attempted, on what, and the reason.
struct Error {
  // What the operator can do about it, where that differs.
  enum class Kind : std::uint8_t {
    other,
    damaged,   // what is stored is not as it was written, or not all there
    denied,    // the process may not do it
    no_space,  // there is no room for it
  };
  std::string message;
  Kind kind = Kind::other;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  T& value() {
    TUBED_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    TUBED_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

  // Precondition: !ok().
  const Error& error() const {
    TUBED_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }

  // Precondition: !ok().
  const Error& error() const {
    TUBED_ASSERT(!ok_);
    return error_;
  }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace tubed
