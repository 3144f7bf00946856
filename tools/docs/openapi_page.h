// The description of the HTTP API, and its reference page, generated from the tables of operations,
// commands and stats.
#pragma once

#include <string>

namespace tubed::docs {

std::string openapi_yaml();  // docs/reference/openapi.yaml [OpenAPI 3.1]
std::string openapi_json();  // the same, for tests
std::string api_markdown();  // docs/reference/api.md

}  // namespace tubed::docs
