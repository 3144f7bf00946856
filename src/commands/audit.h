// The audit: reports commands that a role does not allow, and the commands of administrators that
// have run. [extension: authentication]
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "facts/types.h"
#include "protocol/answer.h"

namespace tubed::commands {

struct ArgumentStorage;
struct Command;
struct Context;

// A decision about a command. Its texts are valid during the call.
struct AuditEvent {
  enum class What : std::uint8_t {
    ran,           // a command of the family admin has run, or its client has closed before its end
    denied,        // DENIED
    hidden,        // NOT_FOUND, because the role may not use the tube of the job
    unauthorized,  // UNAUTHORIZED: a wrong token, or a command before `auth`
    role_full,     // OUT_OF_MEMORY: a right token, but limits.connections of its role is reached
  };
  What what = What::denied;
  SessionId session = 0;
  std::string_view command;    // empty: an unknown word
  std::string_view tube;       // which it names or concerns, or of its job; empty: none
  std::string_view principal;  // empty: not authenticated
  std::string_view role;       // empty: none
  // Of a command that has run.
  std::string_view to = {};                // the tube that it moves jobs to; empty: none
  std::optional<JobId> job = {};           // which it names
  std::string_view reply = {};             // the word of its answer; empty: it did not end
  std::optional<std::uint64_t> jobs = {};  // how many it has changed, as far as it says so
};
// Returns the word for the log.
std::string_view name_of(AuditEvent::What what);

// Reports an event about a command to the host of the service. Precondition: the context has a
// principal, here and below.
[[gnu::cold]] void audit(const Context& context, AuditEvent::What what, std::string_view command,
                         std::string_view tube);
// Reports that a command of the family admin has run and has this answer. A Number without a word:
// the command ends early, because its client closes or lost its rights. Precondition: authorize()
// has allowed it.
[[gnu::cold]] void audit_ran(const Context& context, const Command& command,
                             const ArgumentStorage& arguments, const protocol::Answer& answer);

}  // namespace tubed::commands
