// Result<T>: a value or an error. For errors of the environment (files, sockets, configuration); a
// bug is an assertion, and a client's mistake is a protocol reply.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace tubed {

// One line for the operator: the operation, its object and the reason.
struct Error {
  // Errors that the operator or the caller handles differently.
  enum class Kind : std::uint8_t {
    other,
    damaged,   // stored data is altered or incomplete
    denied,    // the process lacks the permission
    no_space,  // the disk or the quota is full
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
  T& value() & {
    TUBED_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    TUBED_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(value()); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !ok().
  const Error& error() const& {
    TUBED_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    TUBED_ASSERT(!ok());
    return std::move(*std::get_if<1>(&state_));
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

  // Precondition: ok(). Makes TRY work with Result<void>.
  void value() const { TUBED_ASSERT(ok_); }

  // Precondition: !ok().
  const Error& error() const& {
    TUBED_ASSERT(!ok_);
    return error_;
  }
  Error&& error() && {
    TUBED_ASSERT(!ok_);
    return std::move(error_);
  }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace tubed

// Evaluates to the value of a Result; if it is an error, returns the error from the calling
// function.
//   auto file = TRY(storage.open(name));
//   TRY(storage.sync(file));
// Uses a statement expression of g++ and clang: no expression of standard C++ returns.
#define TRY(...) TUBED_TRY(TUBED_TRY_NAME(try_result_, __COUNTER__), __VA_ARGS__)

// Makes the name unique for each TRY: a lambda in the argument may contain another TRY.
#define TUBED_TRY_NAME(prefix, number) TUBED_TRY_JOIN(prefix, number)
#define TUBED_TRY_JOIN(prefix, number) prefix##number
#define TUBED_TRY(name, ...)                        \
  __extension__({                                   \
    auto name = (__VA_ARGS__);                      \
    if (!name.ok()) return std::move(name).error(); \
    std::move(name).value();                        \
  })
