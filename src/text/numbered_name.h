// Names of files that are numbered, such as segment.0000000012.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tubed {

// Returns the prefix and the number with at least ten digits: names sort as their numbers do.
// O(name).
std::string numbered_name(std::string_view prefix, std::uint64_t number);

// The number in a name of numbered_name() with this prefix. Nothing: it is another name, or the
// number is 0.
std::optional<std::uint64_t> number_of_name(std::string_view prefix, std::string_view name);

}  // namespace tubed
