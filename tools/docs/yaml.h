// JSON values as YAML that any parser reads: a text is in double quotes, with the escapes of JSON,
// unless it is letters, digits and spaces that no version of YAML takes for anything else.
#pragma once

#include <string>

#include "json/json.h"

namespace tubed::docs {

// Whole lines. Precondition: an object. O(value).
std::string to_yaml(const json::Json& value);

}  // namespace tubed::docs
