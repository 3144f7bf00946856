// Commands that workers send.
#include <algorithm>
#include <string>
#include <utility>

#include "base/planted.h"
#include "commands/audit.h"
#include "commands/authorization.h"
#include "commands/conversation.h"
#include "commands/handlers.h"
#include "commands/service.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Status done_or_not_found(bool done, std::string_view word) {
  return {done ? word : word::kNotFound};
}

Answer reserve_within(Context& context, engine::Wait wait, Waiting waiting = {}) {
  // The reserve of a client that has half-closed does not wait. [protocol: reserve, TIMED_OUT]
  if (!context.may_wait) wait.limit = Duration::zero();
  auto notice = context.engine.reserve(context.session, context.now, wait);
  if (!notice) return waiting;
  return answer_of(std::move(*notice));
}

Number watching(Context& context) {
  return {"WATCHING", context.engine.queries().watched_count(context.session)};
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
    case engine::Notice::Kind::deleted:
      return Number{word::kDeleted, notice.job};
    case engine::Notice::Kind::buried:
      return Number{word::kBuried, notice.job};
    case engine::Notice::Kind::not_found:
      return Status{word::kNotFound};
  }
  return Close{};
}

Answer reserve(Context& context, const NoArguments&) {
  return reserve_within(context, {});
}

Answer reserve_with_timeout(Context& context, const TimeoutArguments& arguments) {
  return reserve_within(context, {.limit = arguments.timeout});
}

Answer reserve_with_abort(Context& context, const NoArguments&) {
  return reserve_within(context, {}, {.until_input = true});
}

Answer reserve_job(Context& context, const JobArguments& arguments) {
  auto job = context.engine.reserve_job(context.session, context.now, arguments.id);
  if (!job) return Status{word::kNotFound};
  return JobAnswer{"RESERVED", job->id, std::move(job->body)};
}

// Without a timeout, or with 0, it does not wait and is not warned of a TTR.
Answer reserve_batch(Context& context, Operation& operation,
                     const ReserveBatchArguments& arguments) {
  const std::uint64_t most_bytes = context.service.conversation_limits().output_bytes;
  JobBatch batch;
  std::uint64_t bytes = 0;
  const auto add = [&](engine::JobBody job) {
    bytes += job.body.size();
    batch.jobs.push_back({"RESERVED", job.id, std::move(job.body)});
  };
  const bool may_wait = arguments.timeout && arguments.timeout->seconds.count > 0;
  if (auto* waited = std::get_if<BatchOperation>(&operation)) {
    // Other commands may have run since the notice: the job may have been removed, or be reserved
    // by another client.
    if (context.engine.queries().tube_of_held(context.session, waited->first.id) ||
        TUBED_PLANTED(batch_keeps_a_removed_job)) {
      add(std::move(waited->first));
    }
  } else if (may_wait) {
    const Duration limit = context.may_wait ? Duration(*arguments.timeout) : Duration::zero();
    auto notice = context.engine.reserve(context.session, context.now, {.limit = limit});
    if (!notice) return Waiting{.for_batch = true};
    if (notice->kind == engine::Notice::Kind::deadline_soon) return answer_of(std::move(*notice));
    if (notice->kind == engine::Notice::Kind::timed_out) return batch;
    add({.id = notice->job, .body = std::move(notice->body)});
  }
  while (batch.jobs.size() < arguments.count.value && bytes <= most_bytes) {
    const auto next = context.engine.queries().peek_next(context.session, context.now);
    if (!next || (!batch.jobs.empty() && bytes + next->body.size() > most_bytes)) break;
    add(*context.engine.reserve_ready(context.session, context.now));
  }
  context.service.conversations()
      .at(context.session)
      .spend(static_cast<std::uint32_t>(batch.jobs.size()));
  return batch;
}

Answer delete_batch(Context& context, const DeleteBatchArguments& arguments) {
  std::uint64_t deleted = 0;
  std::string hidden_in;  // the tube of the first hidden job
  arguments.ids.for_each([&](JobId id) {
    if (is_hidden(context, id)) {
      if (hidden_in.empty()) hidden_in = context.engine.queries().tube_of(id);
      return;
    }
    if (context.engine.remove(context.session, context.now, id, context.service)) ++deleted;
  });
  if (!hidden_in.empty()) audit(context, AuditEvent::What::hidden, "delete-batch", hidden_in);
  context.service.count(*find_command("delete"), arguments.ids.count);
  context.service.conversations().at(context.session).spend(arguments.ids.count);
  return Numbers{"DELETED_BATCH", deleted, arguments.ids.count - deleted};
}

Answer touch_all(Context& context, Operation& operation, const NoArguments&) {
  if (!in_progress(operation)) {
    operation = TouchOperation{.jobs = context.engine.queries().held_jobs(context.session)};
  }
  auto& [jobs, next, touched] = std::get<TouchOperation>(operation);
  const std::size_t end =
      std::min<std::size_t>(jobs.size(), next + context.engine.limits().work_per_turn);
  for (; next < end; ++next) {
    if (context.engine.touch(context.session, context.now, jobs[next])) ++touched;
  }
  if (next < jobs.size()) return Unfinished{};
  return Number{"TOUCHED_ALL", touched};
}

Answer set_caps(Context& context, const CapsArguments& arguments) {
  constexpr std::uint32_t kTubes = 1;
  constexpr std::uint32_t kDrained = 1U << 8;
  Conversation& conversation = context.service.conversations().at(context.session);
  conversation.answers().show_tubes((arguments.bits & kTubes) != 0);
  conversation.answers().announce_drained((arguments.bits & kDrained) != 0);
  return Status{"OK"};
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
  const bool done = context.engine.bury(context.session, context.now, arguments.id,
                                        arguments.priority, context.service);
  return done_or_not_found(done, word::kBuried);
}

Answer touch(Context& context, const TouchArguments& arguments) {
  const bool done =
      context.engine.touch(context.session, context.now, arguments.id, arguments.left);
  return done_or_not_found(done, word::kTouched);
}

Answer reserve_mode(Context& context, const ModeArguments& arguments) {
  context.engine.set_mode(context.session, arguments.mode.value());
  return Name{"USING", arguments.mode.word()};
}

Answer watch(Context& context, const WatchArguments& arguments) {
  const std::uint32_t weight = arguments.weight ? arguments.weight->value : 1;
  if (context.engine.watch(context.session, context.now, arguments.tube.text, weight)) {
    return watching(context);
  }
  context.service.counters().count(stats::Counter::watch_limit);
  return Status{word::kOutOfMemory};
}

Answer ignore(Context& context, const TubeArguments& arguments) {
  if (context.engine.ignore(context.session, context.now, arguments.tube.text)) {
    return watching(context);
  }
  return Status{word::kNotIgnored};
}

}  // namespace tubed::commands
