// Commands that put jobs.
#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Status reply_to(stats::Counter reason) {
  if (reason == stats::Counter::put_too_big) return {word::kJobTooBig};
  return {reason == stats::Counter::put_draining ? word::kDraining : word::kOutOfMemory};
}

}  // namespace

BodyPlan begin_put(Context& context, const PutArguments& arguments) {
  const std::uint32_t bytes = arguments.size.bytes;
  const auto refuse = [&](stats::Counter reason) -> BodyPlan {
    context.service.counters().count(reason);
    const auto kind =
        reason == stats::Counter::put_too_big ? BodyPlan::Kind::discard : BodyPlan::Kind::skip;
    return {kind, bytes, reply_to(reason)};
  };
  if (bytes > context.engine.limits().job_bytes) return refuse(stats::Counter::put_too_big);
  context.engine.mark_producer(context.session);
  if (context.service.draining()) return refuse(stats::Counter::put_draining);
  if (!context.service.log().has_room_for(bytes)) return refuse(stats::Counter::put_journal_full);
  if (!context.engine.claim_memory(bytes)) return refuse(stats::Counter::put_job_memory);
  context.body = Bytes::allocate(bytes);
  if (!context.body) {
    context.engine.return_memory(bytes);
    return refuse(stats::Counter::put_job_memory);
  }
  return {BodyPlan::Kind::accept, bytes};
}

Answer put(Context& context, const PutArguments& arguments) {
  // While the body arrived, drain mode may have begun or the disk may have become full.
  const std::uint32_t bytes = arguments.size.bytes;
  const bool draining = context.service.draining();
  if (draining || !context.service.log().has_room_for(bytes)) {
    context.engine.return_memory(bytes);
    const stats::Counter reason =
        draining ? stats::Counter::put_draining : stats::Counter::put_journal_full;
    context.service.counters().count(reason);
    return reply_to(reason);
  }
  const JobId id = context.engine.put(context.session, context.now,
                                      {.priority = arguments.priority,
                                       .delay = arguments.delay,
                                       .ttr = arguments.ttr,
                                       .body = std::move(context.body)},
                                      context.service);
  return Number{"INSERTED", id};
}

Answer use(Context& context, const TubeArguments& arguments) {
  if (context.engine.use(context.session, context.now, arguments.tube.text, context.service)) {
    return Name{"USING", arguments.tube.text};
  }
  context.service.counters().count(stats::Counter::tube_limit);
  return Status{word::kOutOfMemory};
}

}  // namespace tubed::commands
