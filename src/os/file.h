// Whole files, and the standard streams of the process.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::os {

inline constexpr int kStandardInput = 0;
inline constexpr int kStandardOutput = 1;

// The contents of a file. The error is one line that names it. O(bytes).
Result<std::string> read_file(const std::string& path);

// Writes a file beside `path` and renames it to `path`, so that a reader sees all of it or nothing.
// It is not synced. A path that is no regular file is an error. The error is one line that names
// the file.
Result<void> replace_file(const std::string& path, std::string_view contents);

// Writes all of it, waiting for the reader where necessary. The error is one line.
Result<void> write_standard_output(std::string_view text);

}  // namespace tubed::os
