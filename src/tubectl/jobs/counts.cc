#include "tubectl/jobs/counts.h"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"

namespace tubed::tubectl {
namespace {

// Precondition: a free state.
std::size_t place_of(JobState state) {
  const auto* const found = std::ranges::find(kFreeStates, state);
  TUBED_ASSERT(found != kFreeStates.end());
  return static_cast<std::size_t>(found - kFreeStates.begin());
}

}  // namespace

std::uint64_t& FreeCounts::operator[](JobState state) {
  return counts_[place_of(state)];
}

std::uint64_t FreeCounts::operator[](JobState state) const {
  return counts_[place_of(state)];
}

std::uint64_t FreeCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

void FreeCounts::operator+=(const FreeCounts& other) {
  for (const JobState state : kFreeStates) (*this)[state] += other[state];
}

Json FreeCounts::json() const {
  Json object = Json::object();
  for (const JobState state : kFreeStates) object[std::string(name_of(state))] = (*this)[state];
  return object;
}

std::string FreeCounts::words() const {
  std::string text;
  for (const JobState state : kFreeStates) {
    if ((*this)[state] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", (*this)[state], name_of(state));
  }
  return text.empty() ? "no jobs" : text;
}

bool StateChoice::has(JobState state) const {
  return names.empty() || std::ranges::find(names, name_of(state)) != names.end();
}

FreeCounts StateChoice::of(const FreeCounts& counts) const {
  FreeCounts chosen;
  for (const JobState state : kFreeStates) {
    if (has(state)) chosen[state] = counts[state];
  }
  return chosen;
}

std::string tubes_in_words(const std::vector<std::string>& tubes) {
  constexpr std::size_t kNamed = 3;
  if (tubes.size() == 1) return "tube " + tubes.front();
  const std::size_t more = tubes.size() > kNamed ? tubes.size() - kNamed : 0;
  const std::size_t named = more > 0 ? kNamed : tubes.size() - 1;
  const auto first = std::span(tubes).first(named);
  return fmt::format("tubes {} and {}", fmt::join(first, ", "),
                     more > 0 ? fmt::format("{} more", more) : tubes.back());
}

std::string jobs_in_words(std::uint64_t count) {
  return fmt::format("{} job{}", count, count == 1 ? "" : "s");
}

std::string jobs_were(std::uint64_t count) {
  return fmt::format("{} {}", jobs_in_words(count), count == 1 ? "was" : "were");
}

}  // namespace tubed::tubectl
