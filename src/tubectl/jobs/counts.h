// Free jobs: their states, their numbers, and the option that selects states.
//
// A job is free in a state in which no worker holds it: ready, delayed and buried. clear, move,
// import and export act only on free jobs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "facts/types.h"
#include "tubectl/json.h"
#include "tubectl/options.h"
#include "tubectl/snapshot.h"

namespace tubed::tubectl {

inline constexpr std::array kFreeStates{JobState::ready, JobState::delayed, JobState::buried};

// A number for each free state.
class FreeCounts {
 public:
  FreeCounts() = default;
  explicit FreeCounts(const TubeCounts& tube) : counts_{tube.ready, tube.delayed, tube.buried} {}

  std::uint64_t& operator[](JobState state);
  std::uint64_t operator[](JobState state) const;
  std::uint64_t total() const;
  void operator+=(const FreeCounts& other);

  Json json() const;
  // "3 ready, 2 delayed, 1 buried"; "no jobs"
  std::string words() const;

 private:
  std::array<std::uint64_t, kFreeStates.size()> counts_{};
};

// The selected states: all, unless some are named.
struct StateChoice {
  std::vector<std::string> names;  // values of --state

  bool has(JobState state) const;
  // The part of `counts` that is selected.
  FreeCounts of(const FreeCounts& counts) const;
};

inline constexpr std::array<std::string_view, 3> kFreeStateNames{"ready", "delayed", "buried"};

template <auto kStates>
constexpr OptionRow state_option() {
  return option<kStates, &StateChoice::names>(
      {.names = "--state",
       .type = choice("STATE", kFreeStateNames),
       .help = "Only jobs in this state; several times for more of them"});
}

// "tube mail", "tubes a, b and c", "tubes a, b, c and 5 more": for a question. Not empty.
std::string tubes_in_words(const std::vector<std::string>& tubes);

// "1 job", "2 jobs"
std::string jobs_in_words(std::uint64_t count);
// "1 job was", "2 jobs were"
std::string jobs_were(std::uint64_t count);

}  // namespace tubed::tubectl
