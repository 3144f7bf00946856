// The options that several subcommands have: a tube, and what a job is put or released with; and
// the jobs that a command line names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "engine/types.h"

namespace tubed::tubectl {

// Add -t, --tube; -p, --priority; -d, --delay.
CLI::Option* add_tube_option(CLI::App& app, std::string& tube, const std::string& meaning);
CLI::Option* add_priority_option(CLI::App& app, std::optional<Priority>& priority,
                                 const std::string& meaning);
CLI::Option* add_delay_option(CLI::App& app, std::uint32_t& seconds, const std::string& meaning);

// Adds ID... ; what it is given is checked when the command line is read.
CLI::Option* add_ids(CLI::App& app, std::vector<std::string>& ids);
// The ids in their order, each once; "-" stands for those on standard input, with white space
// between. An error: that is no id, or it cannot be read.
Result<std::vector<JobId>> read_ids(const std::vector<std::string>& ids);

}  // namespace tubed::tubectl
