// Times as arguments of commands: the delay, TTR or pause that a client gives.
#pragma once

#include <chrono>
#include <string>

#include <fmt/format.h>

namespace tubed::client {

// A server accepts milliseconds only if its `capabilities` have time:ms. beanstalkd answers
// BAD_FORMAT, and runs the body of such a put as commands.
constexpr bool has_milliseconds(std::chrono::milliseconds time) {
  return time.count() % 1000 != 0;
}

// "60", which every server accepts, or "1500ms". Precondition: the time is not negative.
inline std::string time_argument(std::chrono::milliseconds time) {
  return has_milliseconds(time) ? fmt::format("{}ms", time.count())
                                : fmt::format("{}", time.count() / 1000);
}

}  // namespace tubed::client
