// Files with secrets: keys and tokens, which only their owner and its group may read.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::os {

// An error, in one line with the file, if it is missing, is no regular file, or if others may read
// it or change it, or its group may change it.
Result<void> check_secret(const std::string& file);

// The contents of such a file, of `most` bytes at most.
Result<std::string> read_secret(const std::string& file, std::size_t most);

}  // namespace tubed::os
