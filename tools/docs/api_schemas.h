// The schemas of the answers of the HTTP API, in the language of JSON Schema.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace tubed::docs {

// An array.
json::Json texts(const std::vector<std::string>& values);

// By name: "Server", "Job", "Problem".
json::Json api_schemas();

}  // namespace tubed::docs
