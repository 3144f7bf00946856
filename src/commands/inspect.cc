// Commands that look at the queue and steer it.
#include "commands/handlers.h"
#include "commands/service.h"
#include "commands/stats.h"
#include "protocol/yaml.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Outcome answer_found(Context& context, const std::optional<engine::JobBody>& job) {
  if (job) {
    context.replies.job("FOUND", job->id, job->body);
  } else {
    context.replies.line(word::kNotFound);
  }
  return Outcome::done;
}

}  // namespace

Outcome peek(Context& context, const JobArguments& arguments) {
  return answer_found(context, context.engine.peek(arguments.id));
}

Outcome peek_ready(Context& context, const NoArguments&) {
  return answer_found(context, context.engine.peek_ready(context.session));
}

Outcome peek_delayed(Context& context, const NoArguments&) {
  return answer_found(context, context.engine.peek_delayed(context.session));
}

Outcome peek_buried(Context& context, const NoArguments&) {
  return answer_found(context, context.engine.peek_buried(context.session));
}

Outcome kick(Context& context, Operation& operation, const KickArguments& arguments) {
  if (!in_progress(operation)) {
    operation = KickOperation{.rest = context.engine.begin_kick(context.session, arguments.bound)};
  }
  auto& [rest, moved] = std::get<KickOperation>(operation);
  moved += context.engine.kick(context.session, context.now, rest, context.service);
  if (rest.left > 0) return Outcome::unfinished;
  context.replies.line(word::kKicked, moved);
  return Outcome::done;
}

Outcome kick_job(Context& context, const JobArguments& arguments) {
  const bool done = context.engine.kick_job(context.now, arguments.id, context.service);
  context.replies.line(done ? word::kKicked : word::kNotFound);
  return Outcome::done;
}

Outcome stats(Context& context, const NoArguments&) {
  context.replies.block(server_stats(context.service).text());
  return Outcome::done;
}

Outcome stats_job(Context& context, const JobArguments& arguments) {
  if (const auto info = context.engine.job_info(context.now, arguments.id)) {
    context.replies.block(job_stats(*info, context.service.log()).text());
  } else {
    context.replies.line(word::kNotFound);
  }
  return Outcome::done;
}

Outcome stats_tube(Context& context, const TubeArguments& arguments) {
  if (const auto info = context.engine.tube_info(context.now, arguments.tube.text)) {
    context.replies.block(tube_stats(*info).text());
  } else {
    context.replies.line(word::kNotFound);
  }
  return Outcome::done;
}

// First the parts that are out of date are made, a slice of them at a time; what other clients
// change meanwhile is made with the last slice. Then the list of this moment is written, a part at
// a time.
Outcome list_tubes(Context& context, Operation& operation, const NoArguments&) {
  if (!in_progress(operation)) operation = TubeListOperation();
  auto& [refreshes, list, written] = std::get<TubeListOperation>(operation);
  TubeList& tubes = context.service.tube_list();
  if (list == nullptr) {
    const bool may_slice = refreshes * TubeList::kPartsPerSlice < context.engine.tube_list_parts();
    if (may_slice && !tubes.refresh(context.engine)) {
      ++refreshes;
      return Outcome::unfinished;
    }
    list = tubes.snapshot(context.engine);
    context.replies.begin_block(list->bytes);
  }
  context.replies.block_part(list->parts[written++]->text());
  if (written < list->parts.size()) return Outcome::more;
  context.replies.end_block();
  return Outcome::done;
}

Outcome list_tube_used(Context& context, const NoArguments&) {
  context.replies.line("USING", context.engine.used_tube(context.session));
  return Outcome::done;
}

Outcome list_tubes_watched(Context& context, const NoArguments&) {
  YamlBlock block;
  context.engine.for_each_watched(context.session,
                                  [&](std::string_view name) { block.item(name); });
  context.replies.block(block.text());
  return Outcome::done;
}

Outcome pause_tube(Context& context, const PauseArguments& arguments) {
  const bool done =
      context.engine.pause(context.now, arguments.tube.text, arguments.delay, context.service);
  context.replies.line(done ? word::kPaused : word::kNotFound);
  return Outcome::done;
}

Outcome quit(Context&, const NoArguments&) {
  return Outcome::quit;
}

}  // namespace tubed::commands
