// Commands that show the queue and administer it.
#include <algorithm>
#include <string>
#include <vector>

#include "commands/handlers.h"
#include "commands/service.h"
#include "protocol/yaml.h"
#include "stats/stats.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Answer found(std::optional<engine::JobBody> job) {
  if (!job) return Status{word::kNotFound};
  return JobAnswer{"FOUND", job->id, std::move(job->body)};
}

}  // namespace

Answer peek(Context& context, const JobArguments& arguments) {
  return found(context.engine.peek(arguments.id));
}

Answer peek_ready(Context& context, const NoArguments&) {
  return found(context.engine.peek_ready(context.session));
}

Answer peek_delayed(Context& context, const NoArguments&) {
  return found(context.engine.peek_delayed(context.session));
}

Answer peek_buried(Context& context, const NoArguments&) {
  return found(context.engine.peek_buried(context.session));
}

Answer kick(Context& context, Operation& operation, const KickArguments& arguments) {
  if (!in_progress(operation)) {
    operation = KickOperation{.rest = context.engine.begin_kick(context.session, arguments.bound)};
  }
  auto& [rest, moved] = std::get<KickOperation>(operation);
  moved += context.engine.kick(context.session, context.now, rest, context.service);
  if (rest.left > 0) return Unfinished{};
  return Number{word::kKicked, moved};
}

Answer kick_job(Context& context, const JobArguments& arguments) {
  const bool done = context.engine.kick_job(context.now, arguments.id, context.service);
  return Status{done ? word::kKicked : word::kNotFound};
}

Answer stats(Context& context, const NoArguments&) {
  return TextBlock{stats::server_stats(context.service.server_state()).take()};
}

Answer stats_job(Context& context, const JobArguments& arguments) {
  if (const auto info = context.engine.job_info(context.now, arguments.id)) {
    return TextBlock{stats::job_stats(*info, context.service.log()).take()};
  }
  return Status{word::kNotFound};
}

Answer stats_tube(Context& context, const TubeArguments& arguments) {
  if (const auto info = context.engine.tube_info(context.now, arguments.tube.text)) {
    return TextBlock{stats::tube_stats(*info).take()};
  }
  return Status{word::kNotFound};
}

// First, in slices, the parts that are out of date are made. Parts that other clients' commands
// change meanwhile are made with the last slice. Then the list of that moment is written part by
// part.
Answer list_tubes(Context& context, Operation& operation, const NoArguments&) {
  if (!in_progress(operation)) operation = TubeListOperation();
  auto& [refreshes, list, written] = std::get<TubeListOperation>(operation);
  TubeListCache& tubes = context.service.tube_list_cache();
  if (list == nullptr) {
    const bool may_slice =
        refreshes * TubeListCache::kPartsPerSlice < context.engine.tube_list_parts();
    if (may_slice && !tubes.refresh(context.engine)) {
      ++refreshes;
      return Unfinished{};
    }
    list = tubes.snapshot(context.engine);
  }
  BlockPart part;
  part.text = list->parts[written]->text();
  if (written == 0) part.block_bytes = list->bytes;
  part.last = ++written == list->parts.size();
  return part;
}

Answer list_tube_used(Context& context, const NoArguments&) {
  return Name{"USING", context.engine.used_tube(context.session)};
}

Answer list_tubes_watched(Context& context, const NoArguments&) {
  YamlBlock block;
  context.engine.for_each_watched(context.session,
                                  [&](std::string_view name) { block.item(name); });
  return TextBlock{std::move(block).take()};
}

Answer pause_tube(Context& context, const PauseArguments& arguments) {
  const bool done =
      context.engine.pause(context.now, arguments.tube.text, arguments.delay, context.service);
  return Status{done ? word::kPaused : word::kNotFound};
}

Answer quit(Context&, const NoArguments&) {
  return Close{};
}

namespace {

void append_names(const Command& row, std::vector<std::string>& names) {
  if (row.place == stats::CounterPlace::last) names.emplace_back(row.name);
  std::string_view details = row.details;
  while (!details.empty()) {
    const std::string_view detail = details.substr(0, details.find(' '));
    names.push_back(std::string(row.name) + ":" + std::string(detail));
    details.remove_prefix(std::min(detail.size() + 1, details.size()));
  }
}

}  // namespace

// Clients look a name up in this list before they use a command or a form that other servers lack.
Answer capabilities(Context& context, const NoArguments&) {
  std::vector<std::string> names;
  for (const Command& row : command_table()) append_names(row, names);
  if (const TestHooks* hooks = context.service.test_hooks(); hooks != nullptr) {
    for (const Command& row : hooks->verbs()) append_names(row, names);
  }
  std::ranges::sort(names);
  YamlBlock block;
  for (const std::string& name : names) block.item(name);
  return TextBlock{std::move(block).take()};
}

Answer drain(Context& context, const NoArguments&) {
  context.service.request_drain(true, context.session);
  return Status{word::kDraining};
}

Answer undrain(Context& context, const NoArguments&) {
  context.service.request_drain(false, context.session);
  return Status{word::kNotDraining};
}

}  // namespace tubed::commands
