// The options that several subcommands have: a tube, and what a job is put or released with; and
// the jobs that a command line names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// The id that is all of `text`; nothing: it is none.
std::optional<JobId> id_of(std::string_view text);
// Adds ID... ; what it is given is checked when the command line is read. With `takes_tube` a word
// may also be a tube's name.
CLI::Option* add_ids(CLI::App& app, std::vector<std::string>& ids, bool takes_tube = false);
// True for what read_ids() takes. Precondition of read_ids(): true for each.
bool is_id_or_stdin(std::string_view text);
// The ids in their order, each once; "-" stands for those on standard input, with white space
// between. An error: that is no id, or it cannot be read.
Result<std::vector<JobId>> read_ids(const std::vector<std::string>& ids);

}  // namespace tubed::tubectl
