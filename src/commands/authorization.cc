#include "commands/authorization.h"

#include <algorithm>

#include "base/planted.h"
#include "commands/audit.h"
#include "commands/conversation.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

using What = AuditEvent::What;

// Returns the first tube that the role may not use; empty: it may use all.
std::string_view first_denied(const Role& role, const Named& named) {
  for (const std::string_view tube : {named.tubes[0], named.tubes[1], named.next_tube}) {
    if (!tube.empty() && !may_use(role, tube)) return tube;
  }
  return {};
}

bool may_use_used(const Context& context, const Role& role) {
  std::optional<bool>& known = context.principal()->session_tubes().used;
  if (!known) known = may_use(role, context.engine.used_tube(context.session));
  return *known;
}

std::string_view first_denied_watch(const Context& context, const Role& role) {
  std::string_view denied;
  context.engine.queries().for_each_watched(context.session, [&](std::string_view tube) {
    if (denied.empty() && !may_use(role, tube)) denied = tube;
  });
  return denied;
}

bool may_use_watched(const Context& context, const Role& role) {
  std::optional<bool>& known = context.principal()->session_tubes().watched;
  if (!known) known = first_denied_watch(context, role).empty();
  return *known;
}

// Returns a tube that the command concerns and the role may not use; empty: none.
std::string_view denied_tube(const Context& context, const Role& role, const Command& command,
                             const Named& named) {
  if (command.concerns == Concerns::used && !may_use_used(context, role)) {
    return context.engine.used_tube(context.session);
  }
  if (command.concerns == Concerns::watched && !may_use_watched(context, role)) {
    return first_denied_watch(context, role);
  }
  return command.concerns == Concerns::no_tube ? std::string_view() : first_denied(role, named);
}

// Returns the tube whose jobs the command is about to change; empty: none.
std::string_view tube_of(const Context& context, const Command& command, const Named& named) {
  if (command.concerns == Concerns::used) return context.engine.used_tube(context.session);
  if (command.concerns != Concerns::job) return named.tubes[0];
  return named.job ? context.engine.queries().tube_of(*named.job) : std::string_view();
}

Ruling refuse(const Context& context, stats::Counter reason) {
  context.service.counters().count(reason);
  const bool too_big = reason == stats::Counter::put_too_big;
  return {.refusal = too_big ? word::kJobTooBig : word::kOutOfMemory, .too_big = too_big};
}

bool creates_a_tube_too_many(const Context& context, const RoleLimits& limits,
                             const Command& command, const Named& named) {
  if (!command.creates_tube || limits.tubes == 0) return false;
  const bool has_job =
      command.concerns != Concerns::job || !context.engine.queries().tube_of(*named.job).empty();
  const std::string_view created = named.tubes[1].empty() ? named.tubes[0] : named.tubes[1];
  return has_job && context.engine.info().tubes >= limits.tubes &&
         !context.engine.queries().tube_info(context.now, created);
}

bool sets_a_policy_too_many(const Context& context, const RoleLimits& limits, const Named& named) {
  const engine::Policies& policies = context.engine.queries().policies();
  return named.policy && limits.policies > 0 && policies.count() >= limits.policies &&
         !policies.is_set(named.tubes[0], *named.policy);
}

// Step 4. A put that the server itself refuses takes nothing from limits.put_rate.
Ruling limit(const Context& context, ActiveRole& role, const Command& command, const Named& named) {
  const RoleLimits& limits = role.role().limits;
  const bool is_put = command.access == Access::produce && command.begin_body != nullptr;
  if (is_put && limits.job_bytes > 0 && named.body_bytes > limits.job_bytes) {
    return refuse(context, stats::Counter::put_too_big);
  }
  if (is_put &&
      (context.service.draining() || named.body_bytes > context.engine.limits().job_bytes)) {
    return {};
  }
  if (creates_a_tube_too_many(context, limits, command, named)) {
    return refuse(context, stats::Counter::tube_limit);
  }
  if (sets_a_policy_too_many(context, limits, named)) {
    return refuse(context, stats::Counter::policy_limit);
  }
  if (!is_put) return {};
  if (limits.job_memory > 0 && context.engine.memory().bytes() > limits.job_memory) {
    return refuse(context, stats::Counter::put_job_memory);
  }
  if (!role.take_put(context.now)) return refuse(context, stats::Counter::put_rate);
  return {};
}

// As may_run(), with the arguments.
bool may_run_with(const Role& role, const Command& command, const Named& named) {
  const bool for_server = command.access == Access::admin && command.concerns == Concerns::no_tube;
  return (may(role, command.access) && (!for_server || role.tubes.empty())) ||
         (named.shows && may(role, Access::inspect));
}

using Refusal = std::string_view;  // a reply; empty: it is allowed

// Steps 1 to 3. A tube is checked before a job: the answer for a tube that the role may not use
// must not depend on whether the job exists.
Refusal refusal_of(const Context& context, const Role& role, const Command& command,
                   const Named& named) {
  const auto answer = [&](What what, std::string_view tube, Refusal refusal) {
    audit(context, what, command.name, tube);
    return refusal;
  };
  if (!may_run_with(role, command, named))
    return answer(What::denied, named.tubes[0], word::kDenied);
  const auto hidden = [&] {
    return command.concerns == Concerns::job && named.job && is_hidden(context, *named.job);
  };
  const bool job_first = TUBED_PLANTED(job_is_decided_before_tube) && hidden();
  const std::string_view denied = denied_tube(context, role, command, named);
  if (!denied.empty() && !job_first) return answer(What::denied, denied, word::kDenied);
  if (!hidden()) return {};
  return answer(What::hidden, context.engine.queries().tube_of(*named.job), word::kNotFound);
}

}  // namespace

Principal* Context::principal() const {
  const auto conversations = service.conversations().all();
  const Conversation* of = session < conversations.size() ? conversations[session] : nullptr;
  return of == nullptr ? nullptr : of->principal();
}

Ruling authorize(Context& context, const Command& command, const ArgumentStorage& arguments) {
  Principal& principal = *context.principal();
  const Named named = command.named(arguments);
  if (ActiveRole* active = principal.role(); active != nullptr) {
    const Refusal refusal = refusal_of(context, active->role(), command, named);
    if (!refusal.empty()) return {.refusal = refusal};
    if (const Ruling limited = limit(context, *active, command, named); !limited.refusal.empty()) {
      return limited;
    }
  }
  // Other commands change neither the used tube nor the watch list.
  if (command.concerns == Concerns::argument || command.concerns == Concerns::no_tube) {
    principal.forget_session_tubes();
  }
  if (is_administration(command, named))
    principal.set_audited_tube(tube_of(context, command, named));
  return {};
}

Ruling authorize_again(Context& context, const Command& command, const ArgumentStorage& arguments) {
  const ActiveRole* active = context.principal()->role();
  if (active == nullptr || TUBED_PLANTED(authorised_at_its_line_only)) return {};
  const Named named = command.named(arguments);
  const Refusal refusal = refusal_of(context, active->role(), command, named);
  if (!refusal.empty()) return {.refusal = refusal};
  const bool has_body = command.begin_body != nullptr;
  if (has_body && creates_a_tube_too_many(context, active->role().limits, command, named)) {
    return refuse(context, stats::Counter::tube_limit);
  }
  return {};
}

bool may_run(const Role& role, const Command& command) {
  return may_run_with(role, command, {.shows = command.shows_alone});
}

bool is_administration(const Command& command, const Named& named) {
  return command.access == Access::admin && !named.shows;
}

const Role* role_of(const Context& context) {
  const Principal* principal = context.principal();
  const ActiveRole* role = principal == nullptr ? nullptr : principal->role();
  return role == nullptr ? nullptr : &role->role();
}

bool is_hidden(const Context& context, JobId job) {
  const Role* role = role_of(context);
  if (role == nullptr || role->tubes.empty()) return false;
  const std::string_view tube = context.engine.queries().tube_of(job);
  return !tube.empty() && !may_use(*role, tube);
}

std::optional<JobState> visible_state(const Context& context, JobId job) {
  if (is_hidden(context, job)) return std::nullopt;
  const auto info = context.engine.queries().job_info(context.now, job);
  return info ? std::optional(info->state) : std::nullopt;
}

}  // namespace tubed::commands
