// Reads and writes whole files, and the standard output.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::os {

inline constexpr int kStandardInput = 0;
inline constexpr int kStandardOutput = 1;

// Returns the contents of a file. The error is one line that names the file. O(bytes).
Result<std::string> read_file(const std::string& path);

// Writes a new file in the same directory and renames it to `path`, so a reader sees either all of
// the new contents or none. Does not sync. Fails if `path` is not a regular file. The error is one
// line that names the file.
Result<void> replace_file(const std::string& path, std::string_view contents);

// Writes `text` completely; blocks while the reader is slow. The error is one line.
Result<void> write_standard_output(std::string_view text);

}  // namespace tubed::os
