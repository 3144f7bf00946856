// The word that was probably meant when an unknown one was given.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tubed::tubectl {

// " (did you mean put?)" with the candidate nearest to `word`, or "" when none is near. Cost: the
// product of the lengths, for each.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tubed::tubectl
