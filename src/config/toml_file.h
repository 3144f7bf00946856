// The configuration file: TOML in, settings out.
//
// Knows no setting: keys are looked up in config/table.h. No exception leaves it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/settings.h"

namespace tubed::config {

// Writes what the file says over `settings`. settings.listeners becomes the file's listeners, and
// is empty when it names none. The error is one line, "FILE:LINE: KEY: REASON", for the first
// mistake in the file.
Result<void> read_toml_file(const std::string& file, Settings& settings);

// The same for the contents of a file; `file` is its name in errors.
Result<void> read_toml(std::string_view contents, const std::string& file, Settings& settings);

}  // namespace tubed::config
