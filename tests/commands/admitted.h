// Helpers of the tests of roles and tokens: roles, lines made from rows, and a server whose clients
// have principals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/table.h"
#include "protocol/yaml.h"
#include "tests/commands/talk.h"

namespace tubed::commands {

inline Role role_of_families(std::string name, std::string_view families,
                             std::vector<std::string> tubes = {}) {
  Role role;
  role.name = std::move(name);
  role.produce = families.find('p') != std::string_view::npos;
  role.work = families.find('w') != std::string_view::npos;
  role.inspect = families.find('i') != std::string_view::npos;
  role.admin = families.find('a') != std::string_view::npos;
  role.tubes = std::move(tubes);
  return role;
}

// An audit event that owns its texts.
struct Audited {
  AuditEvent::What what;
  std::string command;
  std::string tube;
  std::string principal;
  std::string role;
  std::string to = {};
  std::optional<JobId> job = std::nullopt;
  std::string reply = {};
  std::optional<std::uint64_t> jobs = std::nullopt;
  friend bool operator==(const Audited&, const Audited&) = default;
};

// A server with roles. A token is the name of a role, or "later".
class Admitted : public Talk {
 public:
  explicit Admitted(const std::vector<Role>& roles, const Limits& limits = {}) : Talk(limits) {
    service.set_roles(roles);
    host.answer_to_token = [this](std::string_view token) -> Authentication {
      if (token == "later") return RefusedLater{};
      ActiveRole* role = service.roles().find(token);
      if (role == nullptr) return Refused{};
      return Granted{.role = role, .name = "client of " + std::string(token)};
    };
    host.on_audit = [this](const AuditEvent& event) {
      audited.push_back({event.what, std::string(event.command), std::string(event.tube),
                         std::string(event.principal), std::string(event.role),
                         std::string(event.to), event.job, std::string(event.reply), event.jobs});
    };
  }

  // A client that has the role from the start.
  std::unique_ptr<Conversation> connect_as(std::string_view role) {
    return std::make_unique<Conversation>(
        service, Admission{.role = service.roles().find(role), .name = "peer"});
  }
  // A client that has to authenticate.
  std::unique_ptr<Conversation> connect_with_token() {
    return std::make_unique<Conversation>(service, Admission{.takes_tokens = true});
  }

  // All lines of stats.
  std::string stats() const { return protocol::yaml_of(service.stats_block()); }

  std::vector<Audited> audited;
};

// An argument that the row takes.
inline std::string argument_for(const ArgumentText& argument, std::string_view tube, JobId job) {
  constexpr std::string_view kWords = "one of: ";
  if (argument.name == "tube") return std::string(tube);
  if (argument.name == "id" || argument.name == "ids") return std::to_string(job);
  if (argument.type.starts_with("key of a policy")) return "max-attempts 5";
  if (argument.type.starts_with("priority and delay")) return "0 0";
  if (!argument.type.starts_with(kWords)) return "1";
  const std::string_view words = argument.type.substr(kWords.size());
  return std::string(words.substr(0, words.find(' ')));
}

// A whole command of the row with its body, with the arguments that have to be there. `to`: its
// second tube, if it has two.
inline std::string line_with(const Command& command, std::string_view tube, JobId job,
                             std::string_view to) {
  std::string line(command.name);
  for (const ArgumentText& argument : command.arguments) {
    if (argument.optional) continue;
    line += " " + (argument.name == "to" ? std::string(to) : argument_for(argument, tube, job));
  }
  line += "\r\n";
  return command.begin_body == nullptr ? line : line + "b\r\n";  // of 1 byte
}

}  // namespace tubed::commands
