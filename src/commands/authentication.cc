// The part of a conversation that depends on a role or a token. [extension: authentication]
//
// A conversation that has to authenticate is in Stage::unauthenticated until a token is right. Its
// lines do not reach run_line(): they are not parsed, counted or run. Afterwards its lines are run
// like any others, except that run_line() asks is_allowed(), and that an unknown word may be
// `auth`.
#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "commands/audit.h"
#include "commands/authorization.h"
#include "commands/conversation.h"
#include "commands/handlers.h"
#include "commands/line_end.h"

namespace tubed::commands {

using namespace protocol;

Conversation::Conversation(Service& service, Admission admission) : Conversation(service) {
  if (admission.role == nullptr && !admission.takes_tokens) return;
  principal_ = std::make_unique<Principal>(service.roles(), std::move(admission));
  if (!principal_->authenticated()) stage_ = Stage::unauthenticated;
}

// --- Before authentication

std::size_t Conversation::take_first_line(std::string_view input) {
  const std::size_t limit = service_.conversation_limits().line_bytes;
  const std::size_t end = find_line_end(input.substr(0, limit));
  if (end == std::string_view::npos && input.size() < limit) {
    stop_ = Stop::starved;
    return 0;
  }
  const std::string_view line = input.substr(0, std::min(end, input.size()));
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const bool has_text = space != std::string_view::npos;
  const Command* command = find_command(name);
  const bool is_open = command != nullptr && command->access == Access::open &&
                       (!has_text || command->text_rule == TextRule::ignored);
  const bool is_line = end != std::string_view::npos && line.find('\0') == std::string_view::npos;
  if (is_line && is_open && command->parse({}, running_.arguments)) {
    running_.row = command;
    run_command();
  } else {
    const bool may_be_token = is_line && has_text;
    const std::string_view token = may_be_token ? line.substr(space + 1) : std::string_view();
    if (!run_auth(name, token)) refuse_first_line(name);
  }
  // A line that is too long has no end here.
  return std::min(line.size() + kLineEnd.size(), input.size());
}

void Conversation::refuse_first_line(std::string_view name) {
  const Command* command = find_command(name);
  audit(context(), AuditEvent::What::unauthorized,
        command == nullptr ? std::string_view() : command->name, {});
  principal_->refuse();
  quit_ = true;
  replies_.write(word::kUnauthorized);
}

// --- Tokens

bool Conversation::run_auth(std::string_view name, std::string_view text) {
  const Command& row = auth_command();
  if (principal_ == nullptr || !principal_->takes_tokens() || name != row.name) return false;
  running_.row = &row;
  row.parse(text, running_.arguments);
  run_command();
  if (principal_->is_refused()) {
    quit_ = true;
  } else {
    stage_ = Stage::line;
  }
  return true;
}

Answer auth(Context& context, const AuthArguments& arguments) {
  Principal& principal = *context.principal();
  ServiceHost& host = context.service.host();
  Authentication result = host.authenticate(arguments.token.text, context.session);
  auto* granted = std::get_if<Granted>(&result);
  if (granted == nullptr) {
    audit(context, AuditEvent::What::unauthorized, auth_command().name, {});
    principal.refuse(std::holds_alternative<RefusedLater>(result));
    if (principal.awaits_refusal()) return Close{};
    return Status{word::kUnauthorized};
  }
  ActiveRole* role = granted->role;
  if (role != nullptr && role != principal.role() && role->is_full()) {
    host.audit({.what = AuditEvent::What::role_full,
                .session = context.session,
                .command = auth_command().name,
                .tube = {},
                .principal = granted->name,
                .role = role->role().name});
    principal.refuse();
    return Status{word::kOutOfMemory};
  }
  principal.authenticate(role, std::move(granted->name));
  context.service.count(auth_command());
  return Status{word::kAuthenticated};
}

void Conversation::refuse() {
  TUBED_ASSERT(awaits_refusal());
  principal_->refuse();
  replies_.write(word::kUnauthorized);
}

// --- Rights

// True if the command that was read may run. Otherwise its reply follows, at the end of its body if
// it has a body.
bool Conversation::is_allowed() {
  Context context = this->context();
  const Command& row = *running_.row;
  const Ruling ruling = authorize(context, row, running_.arguments);
  if (ruling.refusal.empty()) return true;
  if (row.begin_body == nullptr) {
    replies_.write(ruling.refusal);
    return false;
  }
  const std::uint32_t bytes = row.named(running_.arguments).body_bytes;
  if (ruling.too_big) {
    drop_body(bytes, ruling.refusal);
    return false;
  }
  incoming_.bytes = Bytes();
  incoming_.left = bytes;
  incoming_.refusal = ruling.refusal;
  stage_ = Stage::body;
  return false;
}

// True if the command whose body has arrived, or whose next slice is about to run, may still run.
// Otherwise it has ended.
bool Conversation::is_still_allowed() {
  // A list shows the moment of its first part, when the client was allowed to see it.
  const auto* tubes = std::get_if<TubeListOperation>(&running_.operation);
  if (tubes != nullptr && tubes->written > 0) return true;
  if (in_progress(running_.operation) && TUBED_PLANTED(slice_of_a_lost_right)) return true;
  // The client was allowed to ask for the reload, which may have changed its rights.
  if (std::holds_alternative<ReloadOperation>(running_.operation)) return true;
  Context context = this->context();
  const Ruling ruling = authorize_again(context, *running_.row, running_.arguments);
  if (ruling.refusal.empty()) return true;
  abandon_body();
  if (const auto* batch = std::get_if<BatchOperation>(&running_.operation)) {
    service_.engine().take_back(session_, context.now, batch->first.id, service_);
  }
  audit_unfinished();
  replies_.write(ruling.refusal);
  end_operation();
  return false;
}

bool Conversation::rights_changed() {
  if (!wait_ || principal_ == nullptr || is_allowed()) return false;
  cancel_wait();
  stop_ = pending_.empty() ? Stop::starved : Stop::budget;
  return true;
}

std::optional<JobState> Conversation::state_of(JobId job) {
  const Context context = this->context();
  if (is_hidden(context, job)) return std::nullopt;
  const auto info = context.engine.queries().job_info(context.now, job);
  return info ? std::optional(info->state) : std::nullopt;
}

// A command in slices may have changed some jobs. A reload continues without its client.
void Conversation::audit_unfinished() {
  if (principal_ == nullptr) return;
  if (std::holds_alternative<ReloadOperation>(running_.operation)) {
    audit_ran(context(), *running_.row, running_.arguments, Status{});
    running_.operation = {};
    return;
  }
  std::optional<std::uint64_t> jobs;
  if (const auto* one = std::get_if<JobsOperation>(&running_.operation)) jobs = one->done;
  if (const auto* one = std::get_if<MoveOperation>(&running_.operation)) jobs = one->done;
  if (!jobs || running_.row->access != Access::admin) return;
  audit_ran(context(), *running_.row, running_.arguments, Number{{}, *jobs});
  running_.operation = {};
}

}  // namespace tubed::commands
