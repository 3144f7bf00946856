#include "tubectl/suggestion.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/edit_distance.h"

namespace tubed::tubectl {
namespace {

constexpr std::size_t kLongestMeantWord = 100;

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestMeantWord) return "";
  // A third of the word may be wrong, and never more than three letters.
  std::size_t nearest = 4;
  std::string_view meant;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= nearest || distance > candidate.size() / 3) continue;
    nearest = distance;
    meant = candidate;
  }
  return meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant);
}

}  // namespace tubed::tubectl
