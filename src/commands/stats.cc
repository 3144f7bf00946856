#include "commands/stats.h"

#include <span>

namespace tubed::commands {

using engine::JobInfo;
using engine::TubeInfo;
using protocol::YamlBlock;

namespace {

// A line whose value comes from a State. Exactly one of the functions is set.
template <class State>
struct Row {
  using Number = std::uint64_t (*)(const State&);
  using Text = std::string_view (*)(const State&);
  using Span = Duration (*)(const State&);

  std::string_view key;
  std::string_view meaning;
  Number number = nullptr;
  Text quoted = nullptr;
  Text plain = nullptr;
  Span seconds = nullptr;  // with microseconds
};

template <class State>
void write_rows(std::span<const Row<State>> rows, const State& state, YamlBlock& block) {
  for (const Row<State>& row : rows) {
    if (row.number != nullptr) block.number(row.key, row.number(state));
    if (row.quoted != nullptr) block.quoted(row.key, row.quoted(state));
    if (row.plain != nullptr) block.plain(row.key, row.plain(state));
    if (row.seconds != nullptr) block.seconds(row.key, row.seconds(state));
  }
}

template <class State>
void append_texts(std::span<const Row<State>> rows, std::vector<StatsText>& texts) {
  for (const Row<State>& row : rows) {
    texts.push_back({std::string(row.key), std::string(row.meaning)});
  }
}

std::uint64_t seconds_of(Duration duration) {
  return static_cast<std::uint64_t>(whole_seconds(duration));
}

// --- stats

// Everything that a line of stats may tell.
struct Server {
  const Service& service;
  engine::EngineInfo queue;
  KeeperCounts journal;  // all 0 without one
  CpuTimes cpu;
};

using ServerRow = Row<Server>;

// The command table's counters stand between these two.
constexpr ServerRow kJobCounts[] = {
    {.key = "current-jobs-urgent",
     .meaning = "Ready jobs with a priority below 1024.",
     .number = [](const Server& s) { return s.queue.jobs.urgent; }},
    {.key = "current-jobs-ready",
     .meaning = "Ready jobs.",
     .number = [](const Server& s) { return s.queue.jobs.ready; }},
    {.key = "current-jobs-reserved",
     .meaning = "Jobs that clients hold.",
     .number = [](const Server& s) { return s.queue.jobs.reserved; }},
    {.key = "current-jobs-delayed",
     .meaning = "Delayed jobs.",
     .number = [](const Server& s) { return s.queue.jobs.delayed; }},
    {.key = "current-jobs-buried",
     .meaning = "Buried jobs.",
     .number = [](const Server& s) { return s.queue.jobs.buried; }},
};

constexpr ServerRow kServer[] = {
    {.key = "job-timeouts",
     .meaning = "Reservations whose TTR passed.",
     .number = [](const Server& s) { return s.queue.timeouts; }},
    {.key = "total-jobs",
     .meaning = "Jobs put since the start.",
     .number = [](const Server& s) { return s.queue.total_jobs; }},
    {.key = "max-job-size",
     .meaning = "limits.job_bytes.",
     .number = [](const Server& s) -> std::uint64_t {
       return s.service.engine().limits().job_bytes;
     }},
    {.key = "current-tubes",
     .meaning = "Tubes.",
     .number = [](const Server& s) { return s.queue.tubes; }},
    {.key = "current-connections",
     .meaning = "Open connections.",
     .number = [](const Server& s) { return s.queue.sessions; }},
    {.key = "current-producers",
     .meaning = "Open connections that have put.",
     .number = [](const Server& s) { return s.queue.producers; }},
    {.key = "current-workers",
     .meaning = "Open connections that have reserved.",
     .number = [](const Server& s) { return s.queue.workers; }},
    {.key = "current-waiting",
     .meaning = "Open connections that wait in a reserve.",
     .number = [](const Server& s) { return s.queue.waiting; }},
    {.key = "total-connections",
     .meaning = "Connections since the start.",
     .number = [](const Server& s) { return s.service.total_connections(); }},
    {.key = "pid",
     .meaning = "The server's process id.",
     .number = [](const Server& s) { return s.service.identity().process_id; }},
    {.key = "version",
     .meaning = "The server's version.",
     .quoted = [](const Server&) -> std::string_view { return TUBED_VERSION; }},
    {.key = "rusage-utime",
     .meaning = "CPU seconds in user mode.",
     .seconds = [](const Server& s) { return s.cpu.user; }},
    {.key = "rusage-stime",
     .meaning = "CPU seconds in the kernel.",
     .seconds = [](const Server& s) { return s.cpu.system; }},
    {.key = "uptime",
     .meaning = "Seconds since the start.",
     .number =
         [](const Server& s) {
           return seconds_of(s.service.now() - s.service.identity().started);
         }},
    {.key = "binlog-oldest-index",
     .meaning = "The oldest segment of the journal; 0 without one, as the next four.",
     .number = [](const Server& s) { return s.journal.oldest_segment; }},
    {.key = "binlog-current-index",
     .meaning = "The segment being written.",
     .number = [](const Server& s) { return s.journal.current_segment; }},
    {.key = "binlog-records-migrated",
     .meaning = "Records that compaction has copied since the start.",
     .number = [](const Server& s) { return s.journal.records_migrated; }},
    {.key = "binlog-records-written",
     .meaning = "Changes recorded since the start.",
     .number = [](const Server& s) { return s.journal.records_written; }},
    {.key = "binlog-max-size",
     .meaning = "journal.segment_size.",
     .number = [](const Server& s) { return s.journal.segment_bytes; }},
    {.key = "draining",
     .meaning = "Whether puts are refused (SIGUSR1 starts that, SIGUSR2 ends it).",
     .plain = [](const Server& s) -> std::string_view {
       return s.service.draining() ? "true" : "false";
     }},
    {.key = "id",
     .meaning = "A random id of this run of the server.",
     .plain = [](const Server& s) -> std::string_view { return s.service.identity().instance; }},
    {.key = "hostname",
     .meaning = "The machine's name.",
     .quoted = [](const Server& s) -> std::string_view { return s.service.identity().hostname; }},
    {.key = "os",
     .meaning = "The kernel's version.",
     .quoted = [](const Server& s) -> std::string_view { return s.service.identity().os; }},
    {.key = "platform",
     .meaning = "The machine's architecture.",
     .quoted = [](const Server& s) -> std::string_view { return s.service.identity().platform; }},
};

// Behind beanstalkd's lines and the counters of the commands that it does not count.
constexpr ServerRow kOwn[] = {
    {.key = "refused-connections",
     .meaning =
         "Connections refused since the start, beyond limits.connections or the descriptors.",
     .number = [](const Server& s) { return s.service.refused_connections(); }},
    {.key = "current-watches",
     .meaning = "Entries of all watch lists (limits.watches).",
     .number = [](const Server& s) { return s.queue.watches; }},
    {.key = "job-memory",
     .meaning = "Bytes that jobs count as, bodies still arriving included.",
     .number = [](const Server& s) { return s.queue.memory_bytes; }},
    {.key = "max-job-memory",
     .meaning = "limits.job_memory in bytes.",
     .number = [](const Server& s) { return s.service.engine().limits().job_memory_bytes; }},
    {.key = "journal-bytes",
     .meaning = "Bytes of the journal's files, room ahead included; 0 without one.",
     .number = [](const Server& s) { return s.journal.file_bytes; }},
    {.key = "journal-live-bytes",
     .meaning = "Bytes that a journal of today's jobs alone would take.",
     .number = [](const Server& s) { return s.journal.live_bytes; }},
    {.key = "journal-max-bytes",
     .meaning = "journal.max_bytes; 0: no bound.",
     .number = [](const Server& s) { return s.journal.max_file_bytes; }},
    {.key = "journal-commits",
     .meaning = "Writes of the journal since the start, each with all that one turn changed.",
     .number = [](const Server& s) { return s.journal.commits; }},
};

std::string counter_key(const Command& command) {
  return "cmd-" + std::string(command.name);
}

void write_command_counts(const Server& server, bool in_beanstalkd, YamlBlock& block) {
  for (const Command& command : command_table()) {
    if (command.in_beanstalkd_stats != in_beanstalkd) continue;
    block.number(counter_key(command), server.service.command_count(index_of(command)));
  }
}

void append_command_texts(bool in_beanstalkd, std::vector<StatsText>& texts) {
  for (const Command& command : command_table()) {
    if (command.in_beanstalkd_stats != in_beanstalkd) continue;
    texts.push_back({counter_key(command),
                     "Well-formed " + std::string(command.name) + " commands since the start."});
  }
}

// --- stats-tube

constexpr Row<TubeInfo> kTube[] = {
    {.key = "name",
     .meaning = "The tube's name.",
     .quoted = [](const TubeInfo& t) { return t.name; }},
    {.key = "current-jobs-urgent",
     .meaning = "Ready jobs with a priority below 1024.",
     .number = [](const TubeInfo& t) { return t.jobs.urgent; }},
    {.key = "current-jobs-ready",
     .meaning = "Ready jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.ready; }},
    {.key = "current-jobs-reserved",
     .meaning = "Jobs that clients hold.",
     .number = [](const TubeInfo& t) { return t.jobs.reserved; }},
    {.key = "current-jobs-delayed",
     .meaning = "Delayed jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.delayed; }},
    {.key = "current-jobs-buried",
     .meaning = "Buried jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.buried; }},
    {.key = "total-jobs",
     .meaning = "Jobs put since the tube was created.",
     .number = [](const TubeInfo& t) { return t.total_jobs; }},
    {.key = "current-using",
     .meaning = "Connections whose puts go there.",
     .number = [](const TubeInfo& t) { return t.using_count; }},
    {.key = "current-watching",
     .meaning = "Connections that watch it.",
     .number = [](const TubeInfo& t) { return t.watching_count; }},
    {.key = "current-waiting",
     .meaning = "Connections that watch it and wait in a reserve.",
     .number = [](const TubeInfo& t) { return t.waiting_count; }},
    {.key = "cmd-delete",
     .meaning = "Jobs deleted since the tube was created.",
     .number = [](const TubeInfo& t) { return t.delete_count; }},
    {.key = "cmd-pause-tube",
     .meaning = "Pauses since the tube was created.",
     .number = [](const TubeInfo& t) { return t.pause_count; }},
    {.key = "pause",
     .meaning = "The length of the pause in seconds, 0 when it is not paused.",
     .number = [](const TubeInfo& t) -> std::uint64_t { return t.pause.count; }},
    {.key = "pause-time-left",
     .meaning = "Seconds until the pause ends.",
     .number = [](const TubeInfo& t) { return seconds_of(t.pause_left); }},
};

// --- stats-job

// A job, and where the journal has it.
struct KeptJob {
  const JobInfo& job;
  std::uint64_t segment = 0;
};

constexpr Row<KeptJob> kJob[] = {
    {.key = "id", .meaning = "The job's id.", .number = [](const KeptJob& j) { return j.job.id; }},
    {.key = "tube",
     .meaning = "Its tube's name.",
     .quoted = [](const KeptJob& j) { return j.job.tube; }},
    {.key = "state",
     .meaning = "ready, delayed, buried or reserved.",
     .plain = [](const KeptJob& j) { return name_of(j.job.state); }},
    {.key = "pri",
     .meaning = "Its priority, as put, release or bury last set it.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.priority; }},
    {.key = "age",
     .meaning = "Seconds since it was put.",
     .number = [](const KeptJob& j) { return seconds_of(j.job.age); }},
    {.key = "delay",
     .meaning = "Its delay in seconds, as put or release last set it.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.delay.count; }},
    {.key = "ttr",
     .meaning = "Its TTR in seconds.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.ttr.count; }},
    {.key = "time-left",
     .meaning = "Seconds until it is ready again; 0 unless it is reserved or delayed.",
     .number = [](const KeptJob& j) { return seconds_of(j.job.time_left); }},
    {.key = "file",
     .meaning = "The segment of the journal that holds it; 0 without one.",
     .number = [](const KeptJob& j) { return j.segment; }},
    {.key = "reserves",
     .meaning = "How often it was reserved.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.counters.reserves; }},
    {.key = "timeouts",
     .meaning = "How often its TTR passed.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.counters.timeouts; }},
    {.key = "releases",
     .meaning = "How often it was released.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.counters.releases; }},
    {.key = "buries",
     .meaning = "How often it was buried.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.counters.buries; }},
    {.key = "kicks",
     .meaning = "How often it was kicked.",
     .number = [](const KeptJob& j) -> std::uint64_t { return j.job.counters.kicks; }},
};

}  // namespace

YamlBlock server_stats(const Service& service) {
  const Keeper* keeper = service.keeper();
  const Server server{service, service.engine().info(),
                      keeper != nullptr ? keeper->counts() : KeeperCounts{}, service.cpu_times()};
  YamlBlock block;
  write_rows<Server>(kJobCounts, server, block);
  write_command_counts(server, true, block);
  write_rows<Server>(kServer, server, block);
  write_command_counts(server, false, block);
  write_rows<Server>(kOwn, server, block);
  return block;
}

YamlBlock tube_stats(const TubeInfo& tube) {
  YamlBlock block;
  write_rows<TubeInfo>(kTube, tube, block);
  return block;
}

YamlBlock job_stats(const JobInfo& job, const Keeper* keeper) {
  YamlBlock block;
  write_rows<KeptJob>(kJob, {job, keeper != nullptr ? keeper->segment_of(job.id) : 0}, block);
  return block;
}

std::vector<StatsText> server_stats_texts() {
  std::vector<StatsText> texts;
  append_texts<Server>(kJobCounts, texts);
  append_command_texts(true, texts);
  append_texts<Server>(kServer, texts);
  append_command_texts(false, texts);
  append_texts<Server>(kOwn, texts);
  return texts;
}

std::vector<StatsText> tube_stats_texts() {
  std::vector<StatsText> texts;
  append_texts<TubeInfo>(kTube, texts);
  return texts;
}

std::vector<StatsText> job_stats_texts() {
  std::vector<StatsText> texts;
  append_texts<KeptJob>(kJob, texts);
  return texts;
}

}  // namespace tubed::commands
