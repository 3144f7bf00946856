// UTF-8: what of a text is whole characters, and what a terminal is not to be given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tubed::tubectl {

// The bytes of the character at the beginning; 0: there is none. [RFC 3629, section 4]
std::size_t character_bytes(std::string_view text);

// Text of others for a terminal, which would obey some of it: control characters, and bytes that
// are no UTF-8, become \r or \x1b. Line ends and tabs stay.
std::string escaped(std::string_view text);

}  // namespace tubed::tubectl
