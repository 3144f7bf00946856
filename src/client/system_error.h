// An Error from errno.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::client {

// "ATTEMPT: what errno means"; of the kind `denied` if that is a lack of permission. Call it before
// anything else can change errno.
Error system_error(const std::string& attempt);

}  // namespace tubed::client
