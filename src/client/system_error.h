// An Error from errno.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::client {

// "ATTEMPT: text of errno"; of the kind `denied` if errno means a lack of permission. Call it
// before other code can change errno.
Error system_error(const std::string& attempt);

}  // namespace tubed::client
