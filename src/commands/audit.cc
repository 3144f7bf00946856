#include "commands/audit.h"

#include "commands/command.h"
#include "commands/principal.h"
#include "commands/service.h"

namespace tubed::commands {

namespace {

AuditEvent event_of(const Context& context, AuditEvent::What what, std::string_view command,
                    std::string_view tube) {
  const Principal& principal = *context.principal();
  const ActiveRole* role = principal.role();
  return {.what = what,
          .session = context.session,
          .command = command,
          .tube = tube,
          .principal = principal.name(),
          .role = role == nullptr ? std::string_view() : role->role().name};
}

}  // namespace

std::string_view name_of(AuditEvent::What what) {
  switch (what) {
    case AuditEvent::What::ran:
      return "ran";
    case AuditEvent::What::denied:
      return "denied";
    case AuditEvent::What::hidden:
      return "hidden";
    case AuditEvent::What::unauthorized:
      return "unauthorized";
    case AuditEvent::What::role_full:
      return "role full";
  }
  return {};
}

void audit(const Context& context, AuditEvent::What what, std::string_view command,
           std::string_view tube) {
  context.service.host().audit(event_of(context, what, command, tube));
}

void audit_ran(const Context& context, const Command& command, const ArgumentStorage& arguments,
               const protocol::Answer& answer) {
  AuditEvent event =
      event_of(context, AuditEvent::What::ran, command.name, context.principal()->audited_tube());
  const Named named = command.named(arguments);
  event.to = named.tubes[command.concerns == Concerns::job ? 0 : 1];
  event.job = named.job;
  event.reply = "OK";  // of a block
  if (const auto* status = std::get_if<protocol::Status>(&answer)) event.reply = status->word;
  if (const auto* number = std::get_if<protocol::Number>(&answer)) {
    event.reply = number->word;
    event.jobs = number->value;
  }
  context.service.host().audit(event);
}

}  // namespace tubed::commands
