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

// Decides about the body of a put into a tube that exists or can be created.
[[gnu::always_inline]] inline BodyPlan plan_put(Context& context, std::uint32_t bytes,
                                                bool has_tube) {
  const auto refuse = [&](stats::Counter reason) -> BodyPlan {
    context.service.counters().count(reason);
    const auto kind =
        reason == stats::Counter::put_too_big ? BodyPlan::Kind::discard : BodyPlan::Kind::skip;
    return {kind, bytes, reply_to(reason)};
  };
  if (bytes > context.engine.limits().job_bytes) return refuse(stats::Counter::put_too_big);
  context.engine.mark_producer(context.session);
  if (context.service.draining()) return refuse(stats::Counter::put_draining);
  if (!has_tube) return refuse(stats::Counter::tube_limit);
  if (!context.service.log().has_room_for(bytes)) return refuse(stats::Counter::put_journal_full);
  if (!context.engine.claim_memory(bytes)) return refuse(stats::Counter::put_job_memory);
  context.body = Bytes::allocate(bytes);
  if (!context.body) {
    context.engine.return_memory(bytes);
    return refuse(stats::Counter::put_job_memory);
  }
  return {BodyPlan::Kind::accept, bytes};
}

// The reply to a put whose body was accepted: the server has no place for it any more.
Status refuse_late(Context& context, std::uint32_t bytes, stats::Counter reason) {
  context.engine.return_memory(bytes);
  context.service.counters().count(reason);
  return reply_to(reason);
}

// While a body arrived, drain mode may have begun or the disk may have become full.
[[gnu::always_inline]] inline std::optional<Status> refused_meanwhile(Context& context,
                                                                      std::uint32_t bytes) {
  if (context.service.draining()) {
    return refuse_late(context, bytes, stats::Counter::put_draining);
  }
  if (context.service.log().has_room_for(bytes)) return std::nullopt;
  return refuse_late(context, bytes, stats::Counter::put_journal_full);
}

template <class Arguments>
engine::PutRequest request_of(Context& context, const Arguments& arguments) {
  return {.priority = arguments.priority,
          .delay = arguments.delay,
          .ttr = arguments.ttr,
          .body = std::move(context.body)};
}

}  // namespace

BodyPlan begin_put(Context& context, const PutArguments& arguments) {
  return plan_put(context, arguments.size.bytes, true);
}

Answer put(Context& context, const PutArguments& arguments) {
  if (const auto refused = refused_meanwhile(context, arguments.size.bytes)) return *refused;
  const JobId id = context.engine.put(context.session, context.now, request_of(context, arguments),
                                      context.service);
  return Number{kInserted, id};
}

BodyPlan begin_put_in_tube(Context& context, const PutInTubeArguments& arguments) {
  const bool has_tube = context.engine.has_room_for_tube(arguments.tube.text);
  return plan_put(context, arguments.size.bytes, has_tube);
}

Answer put_in_tube(Context& context, const PutInTubeArguments& arguments) {
  const std::uint32_t bytes = arguments.size.bytes;
  if (const auto refused = refused_meanwhile(context, bytes)) return *refused;
  const auto id = context.engine.put_in_tube(context.now, arguments.tube.text,
                                             request_of(context, arguments), context.service);
  if (!id) return refuse_late(context, bytes, stats::Counter::tube_limit);
  return Number{kInserted, *id};
}

Answer use(Context& context, const TubeArguments& arguments) {
  if (context.engine.use(context.session, context.now, arguments.tube.text, context.service)) {
    return Name{"USING", arguments.tube.text};
  }
  context.service.counters().count(stats::Counter::tube_limit);
  return Status{word::kOutOfMemory};
}

}  // namespace tubed::commands
