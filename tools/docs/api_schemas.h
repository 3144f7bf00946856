// The schemas of the answers of the HTTP API, in the language of JSON Schema.
#pragma once

#include "tools/docs/document.h"

namespace tubed::docs {

// By name: "Server", "Job", "Problem".
Document api_schemas();

}  // namespace tubed::docs
