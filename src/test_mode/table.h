// The commands of a server in test mode: the rows of the test verbs, and the rows of the command
// table with their faults and events.
#pragma once

#include <span>

#include "commands/command.h"

namespace tubed::test_mode {

// The rows of the test verbs, which no other server knows. They are not counted.
std::span<const commands::Command> verb_table();

// The row that runs in place of this row of the command table: it meets the faults that are set and
// records the events of its answer. [TestMode::run, TestMode::begin_body]
const commands::Command* observed(const commands::Command& row);

}  // namespace tubed::test_mode
