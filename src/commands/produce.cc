// Commands that put jobs.
#include <optional>
#include <utility>

#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

constexpr std::string_view kInserted = "INSERTED";

Status reply_to(stats::Counter reason) {
  if (reason == stats::Counter::put_too_big) return {word::kJobTooBig};
  return {reason == stats::Counter::put_draining ? word::kDraining : word::kOutOfMemory};
}

// These functions are inlined because put is the most frequent command.

// Decides about the body of a put. `has_tube`: the tube exists or can be created. `full`: its
// policy allows no more jobs.
[[gnu::always_inline]] inline BodyPlan plan_put(Context& context, std::uint32_t bytes,
                                                std::uint32_t tag_bytes, bool has_tube, bool full,
                                                bool has_text) {
  const auto refuse = [&](stats::Counter reason) -> BodyPlan {
    context.service.counters().count(reason);
    const auto kind =
        reason == stats::Counter::put_too_big ? BodyPlan::Kind::discard : BodyPlan::Kind::skip;
    return {.kind = kind, .has_text = false, .bytes = bytes, .refusal = reply_to(reason)};
  };
  if (bytes > context.engine.limits().job_bytes) return refuse(stats::Counter::put_too_big);
  context.engine.mark_producer(context.session);
  if (context.service.draining()) return refuse(stats::Counter::put_draining);
  if (!has_tube) return refuse(stats::Counter::tube_limit);
  const std::uint32_t memory = bytes + tag_bytes;
  if (!context.service.log().has_room_for(memory)) return refuse(stats::Counter::put_journal_full);
  if (full) [[unlikely]]
    return refuse(stats::Counter::put_tube_full);
  if (!context.engine.memory().claim(memory)) return refuse(stats::Counter::put_job_memory);
  context.body = Bytes::allocate(bytes);
  if (!context.body) {
    context.engine.memory().give_back(memory);
    return refuse(stats::Counter::put_job_memory);
  }
  return {.kind = BodyPlan::Kind::accept, .has_text = has_text, .bytes = bytes, .refusal = {}};
}

// Returns the reply to a put whose body was accepted, but for which the server no longer has room.
Status refuse_late(Context& context, std::uint32_t memory, stats::Counter reason) {
  context.engine.memory().give_back(memory);
  context.service.counters().count(reason);
  return reply_to(reason);
}

// Checks again what may have changed while the body arrived: drain mode, the disk, the tube.
[[gnu::always_inline]] inline std::optional<Status> refused_meanwhile(Context& context,
                                                                      std::uint32_t memory,
                                                                      bool full) {
  if (context.service.draining()) {
    return refuse_late(context, memory, stats::Counter::put_draining);
  }
  if (full) [[unlikely]]
    return refuse_late(context, memory, stats::Counter::put_tube_full);
  if (context.service.log().has_room_for(memory)) return std::nullopt;
  return refuse_late(context, memory, stats::Counter::put_journal_full);
}

template <class Arguments>
engine::PutRequest request_of(Context& context, const Arguments& arguments) {
  return {.priority = arguments.priority,
          .delay = arguments.delay,
          .ttr = arguments.ttr.seconds,
          .body = std::move(context.body)};
}

// plan_put() for lines with tags or a tube.
template <class Arguments>
[[gnu::noinline]] BodyPlan plan_long_put(Context& context, const Arguments& arguments,
                                         bool has_tube, bool full) {
  const std::uint32_t bytes = arguments.size.bytes;
  return plan_put(context, bytes, claimed_memory(arguments) - bytes, has_tube, full, true);
}

template <class Arguments>
bool has_tags(const Arguments& arguments) {
  return !arguments.tags.text.empty() || arguments.ttr.short_by_ms > 0;
}

// Returns the word of stats-job, in capitals.
std::string_view state_word(std::optional<JobState> state) {
  if (!state) return word::kDeleted;
  switch (*state) {
    case JobState::ready:
      return "READY";
    case JobState::delayed:
      return "DELAYED";
    case JobState::buried:
      return word::kBuried;
    case JobState::reserved:
      return "RESERVED";
  }
  return {};
}

// The end of a put or put-in-tube with tags.
template <class Arguments>
[[gnu::noinline]] Answer put_with_tags(Context& context, std::string_view tube,
                                       const Arguments& arguments) {
  const std::uint32_t memory = claimed_memory(arguments);
  const bool full = context.engine.queries().is_full(tube);
  if (const auto refused = refused_meanwhile(context, memory, full)) return *refused;
  const JobTags tags = tags_of_put(arguments);
  const auto result = context.engine.put_with_tags(
      context.now, tube, request_of(context, arguments), tags, context.service);
  if (!result) return refuse_late(context, memory, stats::Counter::tube_limit);
  if (result->added) return Number{kInserted, result->id};
  return Numbers{.word = kInserted,
                 .first = result->id,
                 .second = result->lowered_to,
                 .state = state_word(result->state)};
}

}  // namespace

BodyPlan begin_put(Context& context, const PutArguments& arguments) {
  if (has_tags(arguments)) [[unlikely]] {
    return plan_long_put(context, arguments, true, context.engine.uses_full_tube(context.session));
  }
  return plan_put(context, arguments.size.bytes, 0, true,
                  context.engine.uses_full_tube(context.session), false);
}

Answer put(Context& context, const PutArguments& arguments) {
  if (has_tags(arguments)) [[unlikely]] {
    return put_with_tags(context, context.engine.used_tube(context.session), arguments);
  }
  const bool full = context.engine.uses_full_tube(context.session);
  if (const auto refused = refused_meanwhile(context, arguments.size.bytes, full)) return *refused;
  const JobId id = context.engine.put(context.session, context.now, request_of(context, arguments),
                                      context.service);
  return Number{kInserted, id};
}

BodyPlan begin_put_in_tube(Context& context, const PutInTubeArguments& arguments) {
  const bool has_tube = context.engine.queries().has_room_for_tube(arguments.tube.text);
  return plan_long_put(context, arguments, has_tube,
                       context.engine.queries().is_full(arguments.tube.text));
}

Answer put_in_tube(Context& context, const PutInTubeArguments& arguments) {
  if (has_tags(arguments)) {
    return put_with_tags(context, arguments.tube.text, arguments);
  }
  const bool full = context.engine.queries().is_full(arguments.tube.text);
  if (const auto refused = refused_meanwhile(context, arguments.size.bytes, full)) return *refused;
  const auto id = context.engine.put_in_tube(context.now, arguments.tube.text,
                                             request_of(context, arguments), context.service);
  if (!id) return refuse_late(context, arguments.size.bytes, stats::Counter::tube_limit);
  return Number{kInserted, *id};
}

Answer use(Context& context, const TubeArguments& arguments) {
  if (context.engine.use(context.session, context.now, arguments.tube.text)) {
    return Name{"USING", arguments.tube.text};
  }
  context.service.counters().count(stats::Counter::tube_limit);
  return Status{word::kOutOfMemory};
}

}  // namespace tubed::commands
