// Numbers and times as text, for the story of a life.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace tubed::cluster_test {

inline std::string text(std::uint64_t number) {
  return std::to_string(number);
}

inline std::string text(Time time) {
  return std::to_string(time.time_since_epoch() / std::chrono::microseconds(1)) + " us";
}

}  // namespace tubed::cluster_test
