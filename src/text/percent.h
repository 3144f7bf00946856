// Percent-encoding: a text as one word of a line. [RFC 3986, section 2.1]
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tubed {

// Returns the text with %XX for each space, control character, DEL and percent sign. All other
// bytes stay. O(text).
std::string percent_encoded(std::string_view text);

// The reverse, which accepts %XX for any byte. No value: two hexadecimal digits do not follow a
// percent sign. O(text).
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace tubed
