// Commands that workers send.
#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Status done_or_not_found(bool done, std::string_view word) {
  return {done ? word : word::kNotFound};
}

Answer reserve_within(Context& context, engine::Wait wait) {
  // The reserve of a client that has half-closed does not wait. [protocol: reserve, TIMED_OUT]
  if (context.peer_is_gone) wait.limit = Duration::zero();
  auto notice = context.engine.reserve(context.session, context.now, wait);
  if (!notice) return Waiting{};
  return answer_of(std::move(*notice));
}

Number watching(Context& context) {
  return {"WATCHING", context.engine.watched_count(context.session)};
}

}  // namespace

Answer answer_of(engine::Notice notice) {
  switch (notice.kind) {
    case engine::Notice::Kind::reserved:
      return JobAnswer{"RESERVED", notice.job, std::move(notice.body)};
    case engine::Notice::Kind::timed_out:
      return Status{word::kTimedOut};
    case engine::Notice::Kind::deadline_soon:
      return Status{word::kDeadlineSoon};
  }
  return Close{};
}

Answer reserve(Context& context, const NoArguments&) {
  return reserve_within(context, {});
}

Answer reserve_with_timeout(Context& context, const TimeoutArguments& arguments) {
  return reserve_within(context, {.limit = arguments.timeout});
}

Answer reserve_job(Context& context, const JobArguments& arguments) {
  auto job = context.engine.reserve_job(context.session, context.now, arguments.id);
  if (!job) return Status{word::kNotFound};
  return JobAnswer{"RESERVED", job->id, std::move(job->body)};
}

Answer remove(Context& context, const JobArguments& arguments) {
  const bool done =
      context.engine.remove(context.session, context.now, arguments.id, context.service);
  return done_or_not_found(done, word::kDeleted);
}

Answer release(Context& context, const ReleaseArguments& arguments) {
  const bool done = context.engine.release(context.session, context.now, arguments.id,
                                           arguments.priority, arguments.delay, context.service);
  return done_or_not_found(done, word::kReleased);
}

Answer bury(Context& context, const BuryArguments& arguments) {
  const bool done =
      context.engine.bury(context.session, arguments.id, arguments.priority, context.service);
  return done_or_not_found(done, word::kBuried);
}

Answer touch(Context& context, const JobArguments& arguments) {
  const bool done = context.engine.touch(context.session, context.now, arguments.id);
  return done_or_not_found(done, word::kTouched);
}

Answer watch(Context& context, const TubeArguments& arguments) {
  if (context.engine.watch(context.session, context.now, arguments.tube.text)) {
    return watching(context);
  }
  context.service.counters().count(stats::Counter::watch_limit);
  return Status{word::kOutOfMemory};
}

Answer ignore(Context& context, const TubeArguments& arguments) {
  if (context.engine.ignore(context.session, context.now, arguments.tube.text, context.service)) {
    return watching(context);
  }
  return Status{word::kNotIgnored};
}

}  // namespace tubed::commands
