// Suggestions for mistyped words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tubed {

// Returns "did you mean X?" with the candidate nearest to `word`, or "" if no candidate is near. A
// candidate a.b.c is also near if `word` is near its last part. A word of more than 100 bytes gets
// no suggestion. Cost: for each candidate, the product of the lengths.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// The same for the end of a message: " (did you mean X?)", or "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace tubed
