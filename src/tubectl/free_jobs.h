// The jobs that no worker has: their states, how many there are, and the option that chooses.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/types.h"
#include "tubectl/body_json.h"
#include "tubectl/snapshot.h"

namespace tubed::tubectl {

inline constexpr std::array kFreeStates{JobState::ready, JobState::delayed, JobState::buried};

// A number for each of them.
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

// Which of these states are meant: all, unless some are named.
class StateChoice {
 public:
  // Adds --state.
  void add_to(CLI::App& app);
  bool has(JobState state) const;
  // Those that are meant, of `counts`.
  FreeCounts of(const FreeCounts& counts) const;

 private:
  std::vector<std::string> named_;
};

// "1 job", "2 jobs"
std::string jobs_in_words(std::uint64_t count);
// "1 job was", "2 jobs were"
std::string jobs_were(std::uint64_t count);

}  // namespace tubed::tubectl
