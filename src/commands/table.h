// The command table: one row for each command, in the order of the cmd-… lines of stats.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "commands/command.h"
#include "stats/counters.h"

namespace tubed::commands {

inline constexpr std::size_t kCommandCount = 52;

std::span<const Command, kCommandCount> command_table();

// The row of the command with this name that every conversation has, or null. O(1).
const Command* find_command(std::string_view name);
// The row of `auth`, which only conversations that take tokens have: to others it is an unknown
// word.
const Command& auth_command();

// The word for the family of the command, as in the settings. Empty: it needs no permission.
std::string_view family_of(const Command& command);

// One counter for each row, all of them zero.
using CommandCountTable = std::array<stats::CommandCount, kCommandCount>;
CommandCountTable command_counts();

}  // namespace tubed::commands
