// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace tubed {

// The length in bytes of the first character; 0: the text does not begin with a whole character.
// O(1). [RFC 3629, section 4]
std::size_t character_bytes(std::string_view text);

// True for whole characters alone. It skips ASCII quickly, as most texts are ASCII. O(text).
bool is_utf8(std::string_view text);

}  // namespace tubed
