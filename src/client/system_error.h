// An Error from errno.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::client {

// "ATTEMPT: what errno means". Call it before anything else can change errno.
Error system_error(const std::string& attempt);

}  // namespace tubed::client
