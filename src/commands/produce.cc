// Commands that make jobs.
#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

BodyPlan begin_put(Context& context, const PutArguments& arguments) {
  const std::uint32_t bytes = arguments.size.bytes;
  if (bytes > context.engine.limits().job_bytes) return {bytes, word::kJobTooBig};
  context.engine.mark_producer(context.session);
  if (context.service.draining()) return {bytes, word::kDraining};
  if (!context.engine.claim_memory(bytes)) return {bytes, word::kOutOfMemory};
  context.body = Bytes::allocate(bytes);
  if (!context.body) {
    context.engine.return_memory(bytes);
    return {bytes, word::kOutOfMemory};
  }
  return {bytes, {}};
}

Outcome put(Context& context, const PutArguments& arguments) {
  // Drain mode may have begun while the body arrived.
  if (context.service.draining()) {
    context.engine.return_memory(arguments.size.bytes);
    context.replies.line(word::kDraining);
    return Outcome::done;
  }
  const JobId id = context.engine.put(context.session, context.now,
                                      {.priority = arguments.priority,
                                       .delay = arguments.delay,
                                       .ttr = arguments.ttr,
                                       .body = std::move(context.body)},
                                      context.service);
  context.replies.line("INSERTED", id);
  return Outcome::done;
}

Outcome use(Context& context, const TubeArguments& arguments) {
  if (context.engine.use(context.session, arguments.tube.text, context.service)) {
    context.replies.line("USING", arguments.tube.text);
  } else {
    context.replies.line(word::kOutOfMemory);
  }
  return Outcome::done;
}

}  // namespace tubed::commands
