// Files with secrets, such as keys and tokens: only their owner and, unless a function excludes it,
// its group may read them.
#pragma once

#include <string>

#include "base/result.h"

namespace tubed::os {

// Fails if the file is missing or not a regular file, if others may read or write it, or if its
// group may write it. The error is one line that names the file.
Result<void> check_secret(const std::string& file);

// Returns the contents of such a file, of at most `most` bytes.
Result<std::string> read_secret(const std::string& file, std::size_t most);
// As read_secret(), and also fails if the group may read the file. A credential of systemd, a file
// in $CREDENTIALS_DIRECTORY, may show such a mode: its access list has the user of the service.
Result<std::string> read_own_secret(const std::string& file, std::size_t most);

}  // namespace tubed::os
