// What the operating system says when it refuses.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::tubectl {

// What was tried, and what errno says of it.
Error system_error(const std::string& attempt);

}  // namespace tubed::tubectl
