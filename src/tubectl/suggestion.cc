#include "tubectl/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace tubed::tubectl {
namespace {

constexpr std::size_t kLongestMeantWord = 100;

// Insertions, removals and replacements that turn one word into the other.
std::size_t distance_between(std::string_view one, std::string_view other) {
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

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestMeantWord) return "";
  // A third of the word may be wrong, and never more than three letters.
  std::size_t nearest = 4;
  std::string_view meant;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = distance_between(word, candidate);
    if (distance >= nearest || distance > candidate.size() / 3) continue;
    nearest = distance;
    meant = candidate;
  }
  return meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant);
}

}  // namespace tubed::tubectl
