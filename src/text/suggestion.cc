// A suggestion is given only for a near word: a wrong suggestion is worse than none.
#include "text/suggestion.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace tubed {
namespace {

constexpr std::size_t kLongestWord = 100;

// The least number of bytes to insert, remove or replace to turn one word into the other, by the
// algorithm of Wagner and Fischer: row[j] is the distance between the first i bytes of `one` and
// the first j bytes of `other`.
std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The edit distance. The maximum if more than a third of the candidate differs, or more than three
// letters.
std::size_t distance_if_near(std::string_view word, std::string_view candidate) {
  const auto distance = edit_distance(word, candidate);
  const auto allowed = std::min<std::size_t>(3, candidate.size() / 3);
  return distance <= allowed ? distance : std::numeric_limits<std::size_t>::max();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  constexpr auto kFar = std::numeric_limits<std::size_t>::max();
  if (word.size() > kLongestWord) return "";
  std::size_t nearest = kFar;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const auto last_part = candidate.substr(candidate.rfind('.') + 1);
    const auto distance =
        std::min(distance_if_near(word, candidate), distance_if_near(word, last_part));
    if (distance >= nearest) continue;
    nearest = distance;
    found = candidate;
  }
  return nearest == kFar ? "" : fmt::format("did you mean {}?", found);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string question = did_you_mean(word, candidates);
  return question.empty() ? "" : fmt::format(" ({})", question);
}

}  // namespace tubed
