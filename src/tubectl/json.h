// A job's body in JSON: as text if it is UTF-8, else in base64, so that no byte is lost.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace tubed::tubectl {

// Keys stand in the order in which they were added.
using Json = nlohmann::ordered_json;

// Sets "body", or "body_base64".
void set_body(Json& object, std::string_view body);
// Reads what set_body() has set. The error says what is wrong with it.
Result<std::string> body_of(const Json& object);

// One line, without its end.
std::string to_line(const Json& value);

// [RFC 4648, section 4]
std::string to_base64(std::string_view bytes);
// An error unless it is whole and padded.
Result<std::string> from_base64(std::string_view text);

}  // namespace tubed::tubectl
