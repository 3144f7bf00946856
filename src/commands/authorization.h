// Authorization: decides whether the role of a conversation may run a command, by the row of the
// command and the names in its arguments. [extension: authentication]
//
// The decision is made when the line has been read, before the body, and again when the body has
// arrived and before each later slice, because the role may have changed. In this order:
//
// 1. The family of the command (Command::access) must be allowed, else DENIED. A command of the
//    family admin that concerns no tube needs a role that may use all tubes. If the arguments only
//    ask to show something (Command::shows_alone), the family inspect suffices.
// 2. The tubes that it names or concerns (Command::concerns) must be allowed, else DENIED; also
//    the tubes to which its jobs may go later, by a tag or a policy.
// 3. The job that it names must be in a tube that the role may use, else NOT_FOUND, as if the job
//    did not exist.
// 4. The limits of the role: JOB_TOO_BIG or OUT_OF_MEMORY. When a body has arrived, only the number
//    of tubes is checked again.
//
// Nothing here depends on the name of a command.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "commands/command.h"
#include "facts/role.h"

namespace tubed::commands {

struct Ruling {
  std::string_view refusal = {};  // the reply; empty: the command runs
  bool too_big = false;           // the body is dropped as one that exceeds limits.job_bytes
};

// Decides about a command whose line is well-formed, and reports to the audit. Precondition: the
// context has a principal that has authenticated. O(patterns) for each tube; O(watched * patterns)
// for a reserve after the watch list or the role has changed.
[[gnu::cold]] Ruling authorize(Context& context, const Command& command,
                               const ArgumentStorage& arguments);

// Decides again about a command that has begun. The same precondition and cost.
[[gnu::cold]] Ruling authorize_again(Context& context, const Command& command,
                                     const ArgumentStorage& arguments);

// False if the role allows the command for no tube and no job, whatever its arguments are.
bool may_run(const Role& role, const Command& command);

// True if the command with these arguments is of the family admin, and belongs in the audit.
bool is_administration(const Command& command, const Named& named);

// Returns the role of the conversation; null: it may do everything.
const Role* role_of(const Context& context);

// True if the job exists and the role may not use its tube.
bool is_hidden(const Context& context, JobId job);
// Returns the state of a job; nothing: it does not exist, or it is hidden. O(patterns).
std::optional<JobState> visible_state(const Context& context, JobId job);

}  // namespace tubed::commands
