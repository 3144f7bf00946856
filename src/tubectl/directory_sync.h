// What makes a new file last: that its directory is on the disk, too.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::tubectl {

// After it the name of that file, which was just created, outlives a power loss.
Result<void> sync_directory_of(const std::string& file);

}  // namespace tubed::tubectl
