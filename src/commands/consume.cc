// Commands that workers send.
#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Outcome answer(Context& context, bool done, std::string_view word) {
  context.replies.line(done ? word : word::kNotFound);
  return Outcome::done;
}

Outcome reserve_within(Context& context, engine::Wait wait) {
  // A client that will send nothing more is not waited for. [protocol: reserve, TIMED_OUT]
  if (context.peer_is_gone) wait.limit = Duration::zero();
  context.waiting = true;
  context.engine.reserve(context.session, context.now, wait, context.service);
  return context.waiting ? Outcome::waiting : Outcome::done;
}

void answer_watching(Context& context) {
  context.replies.line("WATCHING", context.engine.watched_count(context.session));
}

}  // namespace

Outcome reserve(Context& context, const NoArguments&) {
  return reserve_within(context, {});
}

Outcome reserve_with_timeout(Context& context, const TimeoutArguments& arguments) {
  return reserve_within(context, {.limit = arguments.timeout});
}

Outcome reserve_job(Context& context, const JobArguments& arguments) {
  const auto job = context.engine.reserve_job(context.session, context.now, arguments.id);
  if (!job) return answer(context, false, {});
  context.replies.job("RESERVED", job->id, job->body);
  return Outcome::done;
}

Outcome remove(Context& context, const JobArguments& arguments) {
  const bool done =
      context.engine.remove(context.session, context.now, arguments.id, context.service);
  return answer(context, done, word::kDeleted);
}

Outcome release(Context& context, const ReleaseArguments& arguments) {
  const bool done = context.engine.release(context.session, context.now, arguments.id,
                                           arguments.priority, arguments.delay, context.service);
  return answer(context, done, word::kReleased);
}

Outcome bury(Context& context, const BuryArguments& arguments) {
  const bool done =
      context.engine.bury(context.session, arguments.id, arguments.priority, context.service);
  return answer(context, done, word::kBuried);
}

Outcome touch(Context& context, const JobArguments& arguments) {
  const bool done = context.engine.touch(context.session, context.now, arguments.id);
  return answer(context, done, word::kTouched);
}

Outcome watch(Context& context, const TubeArguments& arguments) {
  if (context.engine.watch(context.session, context.now, arguments.tube.text)) {
    answer_watching(context);
  } else {
    context.service.count(Counter::watch_limit);
    context.replies.line(word::kOutOfMemory);
  }
  return Outcome::done;
}

Outcome ignore(Context& context, const TubeArguments& arguments) {
  if (context.engine.ignore(context.session, context.now, arguments.tube.text, context.service)) {
    answer_watching(context);
  } else {
    context.replies.line(word::kNotIgnored);
  }
  return Outcome::done;
}

}  // namespace tubed::commands
