// The drop-ins of a configuration file: files with further settings, in a directory next to it.
//
// The package owns the configuration file, and the operator owns the drop-ins: an upgrade of the
// package never conflicts with an operator's settings.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace tubed::config {

inline constexpr std::size_t kMaxDropIns = 100;

// The directory of the drop-ins: "/etc/tubed/tubed.d" of "/etc/tubed/tubed.toml". Empty for a name
// that does not end in .toml, which has no drop-ins.
std::string drop_in_directory(const std::string& config_file);

// The drop-ins in the order in which they are read, the byte order of their names: the files whose
// names end in .toml and do not begin with a dot. A directory that does not exist has none. Fails,
// with one line that names the file or the directory, if the directory cannot be read, if it has
// more than kMaxDropIns, or if one of them is a directory, a pipe or a device; a link to a regular
// file is accepted. Cost: one system call for each drop-in.
Result<std::vector<std::string>> drop_in_files(const std::string& config_file);

}  // namespace tubed::config
