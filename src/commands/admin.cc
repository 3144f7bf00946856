// Commands that change the queue or the server for administrators.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "commands/conversation.h"
#include "commands/handlers.h"
#include "commands/service.h"
#include "protocol/block.h"
#include "text/numbers.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Answer go_on_kicking(Context& context, Operation& operation) {
  auto& [rest, kicked] = std::get<JobsOperation>(operation);
  kicked += context.engine.kick(context.now, rest, context.service);
  if (rest.left > 0) return Unfinished{};
  return Number{word::kKicked, kicked};
}

}  // namespace

Answer kick(Context& context, Operation& operation, const KickArguments& arguments) {
  if (!in_progress(operation)) {
    const std::string_view tube = context.engine.used_tube(context.session);
    operation =
        JobsOperation{.rest = context.engine.queries().slices_to_kick(tube, arguments.bound)};
  }
  return go_on_kicking(context, operation);
}

Answer kick_tube(Context& context, Operation& operation, const KickTubeArguments& arguments) {
  if (!in_progress(operation)) {
    const std::string_view tube = arguments.tube.text;
    engine::Engine& engine = context.engine;
    operation = JobsOperation{
        .rest = arguments.state
                    ? engine.queries().slices(tube, arguments.state->value(), arguments.bound)
                    : engine.queries().slices_to_kick(tube, arguments.bound)};
  }
  return go_on_kicking(context, operation);
}

Answer kick_job(Context& context, const KickJobArguments& arguments) {
  const bool done = context.engine.kick_job(context.now, arguments.id,
                                            arguments.delay.value_or(TimeSpan{}), context.service);
  return Status{done ? word::kKicked : word::kNotFound};
}

namespace {

constexpr std::string_view kFlushed = "FLUSHED";

Answer flush_state(Context& context, Operation& operation, std::string_view tube, JobState state,
                   std::uint64_t bound) {
  if (!in_progress(operation)) {
    operation = JobsOperation{.rest = context.engine.queries().slices(tube, state, bound)};
  }
  auto& [rest, flushed] = std::get<JobsOperation>(operation);
  flushed += context.engine.flush_slice(context.now, rest, context.service.log(), context.service);
  if (rest.left > 0) return Unfinished{};
  return Number{kFlushed, flushed};
}

}  // namespace

Answer flush_tube(Context& context, Operation& operation, const FlushArguments& arguments) {
  if (!arguments.state) {
    return Number{kFlushed,
                  context.engine.flush(context.now, arguments.tube.text, context.service)};
  }
  return flush_state(context, operation, arguments.tube.text, arguments.state->value(),
                     arguments.bound.value_or(UINT32_MAX));
}

Answer flush_buried(Context& context, Operation& operation,
                    const TubeInSlicesArguments& arguments) {
  return flush_state(context, operation, arguments.tube.text, JobState::buried, UINT64_MAX);
}

Answer truncate(Context& context, const TubeArguments& arguments) {
  const auto flushed = context.engine.truncate(context.now, arguments.tube.text, context.service);
  if (!flushed) return Status{word::kNotFound};
  return Number{"TRUNCATED", *flushed};
}

Answer move_job(Context& context, const MoveJobArguments& arguments) {
  std::optional<engine::NewPlace> place;
  if (arguments.place) {
    place = {.priority = arguments.place->priority, .delay = arguments.place->delay};
  }
  switch (context.engine.tube_moves().move(context.session, context.now, arguments.id,
                                           arguments.tube.text, place, context.service)) {
    case engine::MoveResult::moved:
      return Status{word::kMoved};
    case engine::MoveResult::not_found:
      return Status{word::kNotFound};
    case engine::MoveResult::tube_full:
      context.service.counters().count(stats::Counter::put_tube_full);
      return Status{word::kOutOfMemory};
    case engine::MoveResult::too_many_tubes:
      break;
  }
  context.service.counters().count(stats::Counter::tube_limit);
  return Status{word::kOutOfMemory};
}

Answer move_jobs(Context& context, Operation& operation, const MoveJobsArguments& arguments) {
  engine::Engine& engine = context.engine;
  if (!in_progress(operation)) {
    operation =
        MoveOperation{.rest = engine.queries().slices(arguments.from.text, arguments.state.value(),
                                                      arguments.bound.value_or(UINT32_MAX)),
                      .to = std::string(arguments.to.text)};
  }
  auto& [rest, to, moved] = std::get<MoveOperation>(operation);
  const auto slice = engine.tube_moves().move_slice(context.now, rest, to, context.service);
  if (!slice && moved == 0) {
    context.service.counters().count(stats::Counter::tube_limit);
    return Status{word::kOutOfMemory};
  }
  moved += slice.value_or(0);
  if (rest.left > 0) return Unfinished{};
  return Number{word::kMoved, moved};
}

Answer reprioritize(Context& context, const ReprioritizeArguments& arguments) {
  const auto done =
      context.engine.tube_moves().reprioritize(arguments.id, arguments.priority, context.service);
  if (!done) return Status{word::kNotFound};
  return Status{*done ? "REPRIORITIZED" : "ALREADY_RESERVED"};
}

Answer delete_force(Context& context, const JobArguments& arguments) {
  const bool done = context.engine.remove_held(context.now, arguments.id, context.service);
  return Status{done ? word::kDeleted : word::kNotFound};
}

Answer pause_tube(Context& context, const PauseArguments& arguments) {
  const bool done =
      context.engine.pause(context.now, arguments.tube.text, arguments.delay, context.service);
  return Status{done ? word::kPaused : word::kNotFound};
}

namespace {

std::string_view name_of(engine::PolicyValue::Source source) {
  switch (source) {
    case engine::PolicyValue::Source::client:
      return "wire";
    case engine::PolicyValue::Source::settings:
      return "file";
    case engine::PolicyValue::Source::none:
      break;
  }
  return "default";
}

// A value of digits has no quotes. It is a number, except the name of a tube or a form that JSON
// does not have: 007.
Value value_of(const PolicyKeyRow& key, std::string_view text) {
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return Text{text};
  const bool leads_with_zero = text.size() > 1 && text.starts_with('0');
  const auto number = parse_number<std::uint64_t>(text);
  if (key.is_place || leads_with_zero || !number) return Plain{text};
  return *number;
}

// Each key with its value, and with the origin of the value.
void write_policy(const engine::Policies& policies, std::string_view tube, BlockSink& block) {
  for (std::size_t i = 0; i < kPolicyKeys; ++i) {
    const PolicyKeyRow& row = policy_keys()[i];
    const engine::PolicyValue value = policies.value(tube, static_cast<PolicyKey>(i));
    block.member(row.name, value_of(row, value.text));
    block.member(fmt::format("{}-from", row.name), Plain{name_of(value.source)});
  }
}

}  // namespace

Answer tube_policy(Context& context, const PolicyArguments& arguments) {
  const std::string_view tube = arguments.tube.text;
  if (!arguments.value) {
    return Block{[&policies = context.engine.queries().policies(), tube](BlockSink& block) {
      write_policy(policies, tube, block);
    }};
  }
  const auto& [key, value] = *arguments.value;
  if (context.engine.set_policy(context.now, tube, key, value, context.service)) {
    return Status{"POLICY_SET"};
  }
  context.service.counters().count(stats::Counter::policy_limit);
  return Status{word::kOutOfMemory};
}

Answer drain(Context& context, const NoArguments&) {
  context.service.host().drain_requested(context.service, true, context.session);
  return Status{word::kDraining};
}

Answer undrain(Context& context, const NoArguments&) {
  context.service.host().drain_requested(context.service, false, context.session);
  // The end of a server by drain mode cannot be stopped.
  return Status{context.service.draining() ? word::kDraining : word::kNotDraining};
}

namespace {

std::shared_ptr<ReloadResult>& reload_result(Operation& operation) {
  return std::get<ReloadOperation>(operation).result;
}

// Makes the reason fit into a line of printable ASCII, which clients read lines as.
void limit_reason(std::string& reason) {
  constexpr std::size_t kReasonBytes = 900;
  reason.resize(std::min(reason.size(), kReasonBytes));
  std::ranges::replace_if(
      reason, [](char c) { return c < ' ' || c > '~'; }, '?');
}

}  // namespace

Answer reload(Context& context, Operation& operation, const NoArguments&) {
  if (!in_progress(operation)) {
    auto at_once = context.service.host().reload_requested(context.session);
    operation = ReloadOperation();
    if (at_once) reload_result(operation) = std::make_shared<ReloadResult>(std::move(*at_once));
  }
  const auto& result = reload_result(operation);
  if (result == nullptr) {
    context.service.conversations().at(context.session).command().park();
    return Unfinished{};
  }
  if (!result->refusal.empty()) {
    limit_reason(result->refusal);
    return Name{word::kNotReloaded, result->refusal};
  }
  return Block{[&reloaded = *result](BlockSink& block) {
    block.member("changed", List{reloaded.changed});
    block.member("needs-restart", List{reloaded.needs_restart});
  }};
}

}  // namespace tubed::commands
