// Chance: a stream of random numbers, and choices made with it.
//
// Each client and each source of faults has its own stream, which follows from its name and the
// seed of the life. It can be left out without changing the choices of the others. The
// distributions are defined here, so a seed means the same with every standard library.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.h"

namespace tubed::simulation {

class Chance {
 public:
  Chance(std::uint64_t seed, std::string_view name) : state_(seed * 0x9e3779b97f4a7c15) {
    for (const char c : name) {
      state_ ^= static_cast<unsigned char>(c);
      number();
    }
  }

  // SplitMix64. [Steele, Lea, Flood: Fast splittable pseudorandom number generators, figure 17]
  std::uint64_t number() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns 0 to `end` - 1; 0 if `end` is 0.
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : number() % end; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool percent(unsigned chance) { return below(100) < chance; }
  // Returns 0 to `most`, inclusive.
  Duration up_to(Duration most) {
    return Duration(
        static_cast<Duration::rep>(below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  // Precondition: the range is not empty.
  template <class Range>
  const auto& one_of(const Range& range) {
    return range[static_cast<std::size_t>(below(std::size(range)))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace tubed::simulation
