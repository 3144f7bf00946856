// Commands that show the queue, its clients and the server, and the commands of a connection.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands/authorization.h"
#include "commands/conversation.h"
#include "commands/handlers.h"
#include "commands/job_columns.h"
#include "commands/service.h"
#include "protocol/block.h"
#include "stats/stats.h"
#include "stats/tube_columns.h"

namespace tubed::commands {

using namespace protocol;

namespace {

Answer found(std::optional<engine::JobBody> job) {
  if (!job) return Status{word::kNotFound};
  return JobAnswer{"FOUND", job->id, std::move(job->body)};
}

}  // namespace

Answer peek(Context& context, const JobArguments& arguments) {
  return found(context.engine.queries().peek(arguments.id));
}

Answer peek_ready(Context& context, const NoArguments&) {
  return found(context.engine.queries().peek_ready(context.session));
}

Answer peek_delayed(Context& context, const NoArguments&) {
  return found(context.engine.queries().peek_delayed(context.session));
}

Answer peek_buried(Context& context, const NoArguments&) {
  return found(context.engine.queries().peek_buried(context.session));
}

Answer peek_reserved(Context& context, const NoArguments&) {
  return found(context.engine.queries().peek_reserved(context.session));
}

Answer wait_for_job(Context& context, const WaitArguments& arguments) {
  const Duration limit = context.may_wait ? Duration(arguments.timeout) : Duration::zero();
  auto notice =
      context.engine.wait_for_job(context.session, context.now, arguments.id, {.limit = limit});
  if (!notice) return Waiting{};
  return answer_of(std::move(*notice));
}

namespace {

// The default number of lines in a page of list-jobs, stats-tubes or list-clients.
constexpr std::uint32_t kUsualLimit = 100;

// `columns`: one of the two.
void write_job(const engine::JobInfo& job, std::span<const std::string_view> columns,
               const Role* role, BlockSink& block) {
  const JobCounters& counters = job.counters;
  const std::string_view dead_from = job.marks.dead_from;
  const bool shows_dead_from = !dead_from.empty() && (role == nullptr || may_use(*role, dead_from));
  const std::string tags = text_of(job.tags);
  std::array<Value, kFilteredJobColumns.size() + 1> row{
      job.id,
      Plain{job.held ? "held" : name_of(job.state)},
      job.priority,
      stats::whole_seconds_of(job.age),
      job.delay.count,
      job.ttr.count,
      stats::whole_seconds_of(job.time_left),
      counters.reserves,
      counters.timeouts,
      counters.releases,
      counters.buries,
      counters.kicks,
      job.body_bytes,
      job.failures(),
      Plain{shows_dead_from ? dead_from : "-"},
      {}};
  row[columns.size()] = Plain{tags};
  block.row(std::span(row).first(columns.size() + (tags.empty() ? 0 : 1)));
}

}  // namespace

Answer list_jobs(Context& context, const ListJobsArguments& arguments) {
  const ListedJobs& listed = arguments.listed.value();
  const JobId from = arguments.from.value_or(0);
  const std::uint32_t limit = arguments.limit ? arguments.limit->value : kUsualLimit;
  const bool filtered = !arguments.filters.text.empty();
  if (listed.next && (from != 0 || filtered)) return Status{word::kBadFormat};
  const engine::Queries& queries = context.engine.queries();
  const std::string_view tube = arguments.tube.text;
  engine::FoundJobs page;
  if (filtered) {
    page = queries.find_jobs(context.now, tube, listed.state, from, limit, listed.waiting_for_group,
                             filter_of(arguments.filters));
  } else if (listed.next) {
    page = {queries.next_jobs(tube, limit)};
  } else {
    page = {queries.list_jobs(tube, listed.state, from, limit, listed.waiting_for_group)};
  }
  return Block{[&queries, now = context.now, role = role_of(context), filtered,
                page = std::move(page)](BlockSink& block) {
    const auto columns = filtered ? std::span<const std::string_view>(kFilteredJobColumns)
                                  : std::span<const std::string_view>(kJobColumns);
    block.begin_table({.names = columns, .rest = kJobTags});
    for (const JobId id : page.jobs) write_job(*queries.job_info(now, id), columns, role, block);
    if (filtered) block.looked_at(page.looked);
    block.end_table(page.next);
  }};
}

Answer stats(Context& context, const NoArguments&) {
  return context.service.stats_block();
}

Answer stats_job(Context& context, const JobArguments& arguments) {
  if (const auto info = context.engine.queries().job_info(context.now, arguments.id)) {
    return Block{[job = *info, &log = context.service.log()](BlockSink& block) {
      stats::write_job_stats(job, log, block);
    }};
  }
  return Status{word::kNotFound};
}

Answer stats_tube(Context& context, const TubeArguments& arguments) {
  if (const auto info = context.engine.queries().tube_info(context.now, arguments.tube.text)) {
    return Block{[tube = *info](BlockSink& block) { stats::write_tube_stats(tube, block); }};
  }
  return Status{word::kNotFound};
}

namespace {

void write_tube(const engine::TubeInfo& tube, BlockSink& block) {
  std::array<Value, stats::kListedTubeColumns> row;
  auto value = row.begin();
  for (const stats::TubeColumn& column : stats::kTubeColumns) {
    if (column.listed.empty()) continue;
    *value++ = column.number == nullptr ? Value(Plain{tube.name}) : Value(column.number(tube));
  }
  block.row(row);
}

}  // namespace

Answer stats_tubes(Context& context, const PageArguments& arguments) {
  return Block{[&engine = context.engine, now = context.now, role = role_of(context),
                from = arguments.from.value_or(0),
                limit = arguments.limit ? arguments.limit->value : kUsualLimit](BlockSink& block) {
    block.begin_table({.names = stats::kListedTubeNames});
    block.end_table(
        engine.queries().visit_tubes(now, from, limit, [&](const engine::TubeInfo& tube) {
          if (role == nullptr || may_use(*role, tube.name)) write_tube(tube, block);
        }));
  }};
}

Answer stats_tube_times(Context& context, const TubeArguments& arguments) {
  if (const auto info = context.engine.queries().tube_info(context.now, arguments.tube.text)) {
    return Block{[tube = *info](BlockSink& block) { stats::write_tube_times(tube, block); }};
  }
  return Status{word::kNotFound};
}

namespace {

// Bounds of a page of list-clients: the ids that are looked at, including ids without a client and
// clients that are not shown; its bytes; and the watched tubes shown of a client.
constexpr std::uint64_t kIdsPerPage = 4096;
constexpr std::size_t kPageBytes = 256 * 1024;
constexpr std::size_t kShownWatches = 20;
// Looking at this many ids costs as much as one command.
constexpr std::uint64_t kIdsPerWork = 64;

// Returns one word without characters that YAML takes for a comment or a key.
std::string word_of(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '#' || c == ':') c = '_';
  }
  return text;
}

std::string word_for(const Principal* principal) {
  const ActiveRole* role = principal == nullptr ? nullptr : principal->role();
  if (role == nullptr || role->role().name.empty()) return "-";
  return word_of(role->role().name);
}

// Later columns are added after these, and before the name that a proxy has reported.
constexpr auto kClientColumns = std::to_array<std::string_view>(
    {"id", "address", "role", "used", "waiting", "held", "idle", "watched"});

// A row of list-clients.
struct ClientRow {
  SessionId session;
  std::string address;
  std::string role;
  std::string_view used;
  std::uint64_t waiting;  // 0 or 1
  std::uint64_t held;
  std::uint64_t idle;
  std::string watched;
  std::string tls_name;

  // The length of its line.
  std::size_t bytes() const {
    const std::size_t of_name = tls_name.empty() ? 0 : 1 + tls_name.size();
    return of_name + fmt::formatted_size("- {} {} {} {} {} {} {} {}\n", session, address, role,
                                         used, waiting, held, idle, watched);
  }
};

ClientRow row_of(const Context& context, SessionId session, const Principal* principal) {
  const engine::Engine& engine = context.engine;
  const ClientDetails details = context.service.host().describe_client(session);
  ClientRow row{.session = session,
                .address = details.address,
                .role = word_for(principal),
                .used = engine.used_tube(session),
                .waiting = engine.is_waiting(session) ? 1U : 0U,
                .held = engine.queries().held_count(session),
                .idle = stats::whole_seconds_of(details.idle),
                .watched = {},
                .tls_name = word_of(details.tls_name)};
  const std::size_t watched = engine.queries().watched_count(session);
  const std::size_t shown = std::min(watched, kShownWatches);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) row.watched.push_back(',');
    row.watched.append(engine.queries().watched_tube(session, i));
  }
  if (watched > shown) row.watched.append(",+").append(std::to_string(watched - shown));
  return row;
}

void write_clients(const std::vector<ClientRow>& rows, std::uint64_t next, BlockSink& block) {
  block.begin_table({.names = kClientColumns, .rest = "tls-name"});
  for (const ClientRow& row : rows) {
    const std::array<Value, kClientColumns.size() + 1> values{
        row.session, Plain{row.address}, Plain{row.role},    Plain{row.used},    row.waiting,
        row.held,    row.idle,           Plain{row.watched}, Plain{row.tls_name}};
    block.row(
        std::span(values).first(row.tls_name.empty() ? kClientColumns.size() : values.size()));
  }
  block.end_table(next);
}

}  // namespace

Answer list_clients(Context& context, const PageArguments& arguments) {
  const std::uint32_t limit = arguments.limit ? arguments.limit->value : kUsualLimit;
  const auto conversations = context.service.conversations().all();
  const std::uint64_t from =
      std::min<std::uint64_t>(arguments.from.value_or(0), conversations.size());
  const std::uint64_t end = std::min<std::uint64_t>(conversations.size(), from + kIdsPerPage);
  // The tubes of other roles, and the addresses of their clients, are not for a role with tubes.
  const Role* role = role_of(context);
  const ActiveRole* only =
      role == nullptr || role->tubes.empty() ? nullptr : context.principal()->role();
  std::vector<ClientRow> rows;
  std::size_t bytes = 0;
  std::uint64_t id = from;
  for (; id < end && rows.size() < limit && bytes < kPageBytes; ++id) {
    const Conversation* client = conversations[id];
    if (client == nullptr) continue;
    const Principal* principal = client->principal();
    if (only != nullptr && (principal == nullptr || principal->role() != only)) continue;
    rows.push_back(row_of(context, static_cast<SessionId>(id), principal));
    bytes += rows.back().bytes();
  }
  context.service.conversations()
      .at(context.session)
      .spend(static_cast<std::uint32_t>((id - from) / kIdsPerWork));
  return Block{[rows = std::move(rows), next = id < conversations.size() ? id : 0](
                   BlockSink& block) { write_clients(rows, next, block); }};
}

// First updates the parts that are out of date, in slices; parts that other clients' commands
// change meanwhile are updated with the last slice. Then writes the list of that moment part by
// part.
Answer list_tubes(Context& context, Operation& operation, const NoArguments&) {
  if (!in_progress(operation)) operation = TubeListOperation();
  auto& [refreshes, list, written] = std::get<TubeListOperation>(operation);
  TubeListCache& tubes = context.service.tube_list_cache();
  if (list == nullptr) {
    const bool may_slice =
        refreshes * TubeListCache::kPartsPerSlice < context.engine.tube_list().parts();
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
  return Block{[&engine = context.engine, session = context.session](BlockSink& block) {
    engine.queries().for_each_watched(session, [&](std::string_view name) { block.item(name); });
  }};
}

Answer stats_group(Context& context, const GroupArguments& arguments) {
  const auto group = context.engine.queries().group_info(arguments.name.text);
  if (!group) return Status{word::kNotFound};
  return Block{[group = *group](BlockSink& block) {
    block.member("name", Text{group.name});
    block.member("ready", group.members.ready);
    block.member("reserved", group.members.reserved);
    block.member("delayed", group.members.delayed);
    block.member("buried", group.members.buried);
    block.member("waiting-jobs", group.held);
  }};
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
  const Role* role = role_of(context);
  const auto append_rows = [&](std::span<const Command> rows) {
    for (const Command& row : rows) {
      const bool may = role == nullptr || may_run(*role, row);
      if (may && &row != &auth_command()) append_names(row, names);
    }
  };
  const Principal* principal = context.principal();
  if (principal != nullptr && principal->takes_tokens()) names.emplace_back("auth:token");
  if (principal != nullptr && !principal->authenticated()) {
    names.emplace_back("capabilities");
  } else {
    names.emplace_back("time:ms");  // a form of many commands
    append_rows(command_table());
    const TestHooks* hooks = context.service.test_hooks();
    if (hooks != nullptr) append_rows(hooks->verbs());
  }
  std::ranges::sort(names);
  return Block{[names = std::move(names)](BlockSink& block) {
    for (const std::string& name : names) block.item(name);
  }};
}

}  // namespace tubed::commands
