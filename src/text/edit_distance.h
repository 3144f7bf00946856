// The distance between two words, for suggestions.
#pragma once

#include <cstddef>
#include <string_view>

namespace tubed {

// The least number of bytes to insert, remove or replace to turn one word into the other.
// O(product of the lengths).
std::size_t edit_distance(std::string_view one, std::string_view other);

}  // namespace tubed
