// The command table: one row for each command, in the order of the cmd-… lines of stats.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "commands/command.h"
#include "stats/counters.h"

namespace tubed::commands {

inline constexpr std::size_t kCommandCount = 53;

std::span<const Command, kCommandCount> command_table();

// Returns the row of the command with this name, or null; null for `auth`. O(1).
const Command* find_command(std::string_view name);
// Returns the row of `auth`, which is an unknown word in a conversation that takes no tokens.
const Command& auth_command();

// Returns the word for the family of the command, as in the settings. Empty: it needs no
// permission.
std::string_view family_of(const Command& command);

// One counter for each row, at zero.
using CommandCountTable = std::array<stats::CommandCount, kCommandCount>;
CommandCountTable command_counts();

}  // namespace tubed::commands
