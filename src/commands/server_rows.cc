#include "commands/rows.h"

namespace tubed::commands {

namespace {

// A row that only the metrics have. The first row of a family has its meaning.
template <Counter kCounter>
constexpr Row<ServerState> counted(std::string_view family, std::string_view label,
                                   std::string_view meaning = {}) {
  return {.key = "",
          .meaning = meaning,
          .number = [](const ServerState& s) { return s.service.counted(kCounter); },
          .metric = {.family = family, .type = MetricType::counter, .label = label}};
}

constexpr Row<ServerState> kJobs[] = {
    {.key = "current-jobs-urgent",
     .meaning = "Ready jobs with a priority below 1024.",
     .number = [](const ServerState& s) { return s.queue.jobs.urgent; },
     .metric = {.family = "tubed_urgent_jobs"}},
    {.key = "current-jobs-ready",
     .meaning = "Ready jobs.",
     .number = [](const ServerState& s) { return s.queue.jobs.ready; },
     .metric = {.family = "tubed_jobs", .label = "state=\"ready\"", .help = "Jobs by state."}},
    {.key = "current-jobs-reserved",
     .meaning = "Jobs that clients hold.",
     .number = [](const ServerState& s) { return s.queue.jobs.reserved; },
     .metric = {.family = "tubed_jobs", .label = "state=\"reserved\""}},
    {.key = "current-jobs-delayed",
     .meaning = "Delayed jobs.",
     .number = [](const ServerState& s) { return s.queue.jobs.delayed; },
     .metric = {.family = "tubed_jobs", .label = "state=\"delayed\""}},
    {.key = "current-jobs-buried",
     .meaning = "Buried jobs.",
     .number = [](const ServerState& s) { return s.queue.jobs.buried; },
     .metric = {.family = "tubed_jobs", .label = "state=\"buried\""}},
};

constexpr Row<ServerState> kBeanstalkd[] = {
    {.key = "job-timeouts",
     .meaning = "Reservations whose TTR passed.",
     .number = [](const ServerState& s) { return s.queue.timeouts; },
     .metric = {.family = "tubed_job_timeouts_total", .type = MetricType::counter}},
    {.key = "total-jobs",
     .meaning = "Jobs put since the start.",
     .number = [](const ServerState& s) { return s.queue.total_jobs; },
     .metric = {.family = "tubed_jobs_put_total",
                .type = MetricType::counter,
                .help = "Jobs put."}},
    {.key = "max-job-size",
     .meaning = "limits.job_bytes.",
     .number = [](const ServerState& s) -> std::uint64_t {
       return s.service.engine().limits().job_bytes;
     },
     .metric = {.family = "tubed_job_size_limit_bytes"}},
    {.key = "current-tubes",
     .meaning = "Tubes.",
     .number = [](const ServerState& s) { return s.queue.tubes; },
     .metric = {.family = "tubed_tubes"}},
    {.key = "current-connections",
     .meaning = "Open connections.",
     .number = [](const ServerState& s) { return s.queue.sessions; },
     .metric = {.family = "tubed_connections"}},
    {.key = "current-producers",
     .meaning = "Open connections that have put.",
     .number = [](const ServerState& s) { return s.queue.producers; },
     .metric = {.family = "tubed_producers"}},
    {.key = "current-workers",
     .meaning = "Open connections that have reserved.",
     .number = [](const ServerState& s) { return s.queue.workers; },
     .metric = {.family = "tubed_workers"}},
    {.key = "current-waiting",
     .meaning = "Open connections that wait in a reserve.",
     .number = [](const ServerState& s) { return s.queue.waiting; },
     .metric = {.family = "tubed_waiting_connections"}},
    {.key = "total-connections",
     .meaning = "Connections since the start.",
     .number = [](const ServerState& s) { return s.service.total_connections(); },
     .metric = {.family = "tubed_connections_total",
                .type = MetricType::counter,
                .help = "Connections taken."}},
    {.key = "pid",
     .meaning = "The server's process id.",
     .number = [](const ServerState& s) { return s.service.identity().process_id; }},
    {.key = "version",
     .meaning = "The server's version.",
     .quoted = [](const ServerState&) -> std::string_view { return TUBED_VERSION; },
     .info_label = "version"},
    {.key = "rusage-utime",
     .meaning = "CPU seconds in user mode.",
     .seconds = [](const ServerState& s) { return s.cpu.user; },
     .metric = {.family = "tubed_cpu_seconds_total",
                .type = MetricType::counter,
                .label = "mode=\"user\"",
                .help = "CPU time used, in user mode and in the kernel."}},
    {.key = "rusage-stime",
     .meaning = "CPU seconds in the kernel.",
     .seconds = [](const ServerState& s) { return s.cpu.system; },
     .metric = {.family = "tubed_cpu_seconds_total",
                .type = MetricType::counter,
                .label = "mode=\"system\""}},
    {.key = "uptime",
     .meaning = "Seconds since the start.",
     .number =
         [](const ServerState& s) {
           return whole_seconds_of(s.service.now() - s.service.identity().started);
         }},
    {.key = "binlog-oldest-index",
     .meaning = "The oldest segment of the journal; 0 without one, as the next four.",
     .number = [](const ServerState& s) { return s.log.oldest_segment; },
     .metric = {.family = "tubed_journal_oldest_segment",
                .help = "The number of the oldest segment of the journal.",
                .journal_only = true}},
    {.key = "binlog-current-index",
     .meaning = "The segment being written.",
     .number = [](const ServerState& s) { return s.log.current_segment; },
     .metric = {.family = "tubed_journal_current_segment",
                .help = "The number of the segment being written.",
                .journal_only = true}},
    {.key = "binlog-records-migrated",
     .meaning = "Records that compaction has copied since the start.",
     .number = [](const ServerState& s) { return s.log.records_migrated; },
     .metric = {.family = "tubed_journal_records_migrated_total",
                .type = MetricType::counter,
                .help = "Records that compaction has copied.",
                .journal_only = true}},
    {.key = "binlog-records-written",
     .meaning = "Changes recorded since the start.",
     .number = [](const ServerState& s) { return s.log.records_written; },
     .metric = {.family = "tubed_journal_records_written_total",
                .type = MetricType::counter,
                .help = "Changes recorded.",
                .journal_only = true}},
    {.key = "binlog-max-size",
     .meaning = "journal.segment_size.",
     .number = [](const ServerState& s) { return s.log.segment_bytes; },
     .metric = {.family = "tubed_journal_segment_size_bytes", .journal_only = true}},
    {.key = "draining",
     .meaning = "Whether puts are refused (SIGUSR1 starts that, SIGUSR2 ends it).",
     .flag = [](const ServerState& s) { return s.service.draining(); },
     .metric = {.family = "tubed_draining",
                .help = "1 while puts are refused (SIGUSR1 starts that, SIGUSR2 ends it)."}},
    {.key = "id",
     .meaning = "A random id of this run of the server.",
     .plain = [](const ServerState& s) -> std::string_view {
       return s.service.identity().instance;
     },
     .info_label = "id"},
    {.key = "hostname",
     .meaning = "The machine's name.",
     .quoted = [](const ServerState& s) -> std::string_view {
       return s.service.identity().hostname;
     },
     .info_label = "hostname"},
    {.key = "os",
     .meaning = "The kernel's version.",
     .quoted = [](const ServerState& s) -> std::string_view { return s.service.identity().os; },
     .info_label = "os"},
    {.key = "platform",
     .meaning = "The machine's architecture.",
     .quoted = [](const ServerState& s) -> std::string_view {
       return s.service.identity().platform;
     },
     .info_label = "platform"},
};

// Behind beanstalkd's lines and the counters of the commands that it does not count.
constexpr Row<ServerState> kOwn[] = {
    {.key = "refused-connections",
     .meaning =
         "Connections refused since the start, beyond limits.connections or the descriptors.",
     .number = [](const ServerState& s) { return s.service.refused_connections(); },
     .metric = {.family = "tubed_refused_connections_total",
                .type = MetricType::counter,
                .help = "Connections refused, beyond limits.connections or the descriptors."}},
    {.key = "current-watches",
     .meaning = "Entries of all watch lists (limits.watches).",
     .number = [](const ServerState& s) { return s.queue.watches; },
     .metric = {.family = "tubed_watches"}},
    {.key = "job-memory",
     .meaning = "Bytes that jobs count as, bodies still arriving included.",
     .number = [](const ServerState& s) { return s.queue.memory_bytes; },
     .metric = {.family = "tubed_job_memory_bytes"}},
    {.key = "max-job-memory",
     .meaning = "limits.job_memory in bytes.",
     .number = [](const ServerState& s) { return s.service.engine().limits().job_memory_bytes; },
     .metric = {.family = "tubed_job_memory_limit_bytes", .help = "limits.job_memory."}},
    {.key = "journal-bytes",
     .meaning = "Bytes of the journal's files, room ahead included; 0 without one.",
     .number = [](const ServerState& s) { return s.log.file_bytes; },
     .metric = {.family = "tubed_journal_bytes",
                .help = "Bytes of the journal's files, room ahead included.",
                .journal_only = true}},
    {.key = "journal-live-bytes",
     .meaning = "Bytes that a journal of today's jobs alone would take.",
     .number = [](const ServerState& s) { return s.log.live_bytes; },
     .metric = {.family = "tubed_journal_live_bytes", .journal_only = true}},
    {.key = "journal-max-bytes",
     .meaning = "journal.max_bytes; 0: no bound.",
     .number = [](const ServerState& s) { return s.log.max_file_bytes; },
     .metric = {.family = "tubed_journal_limit_bytes", .journal_only = true}},
    {.key = "journal-commits",
     .meaning = "Writes of the journal since the start, each with all that one turn changed.",
     .number = [](const ServerState& s) { return s.log.commits; },
     .metric = {.family = "tubed_journal_commits_total",
                .type = MetricType::counter,
                .help = "Writes of the journal, each with all that one turn changed.",
                .journal_only = true}},
    {.key = "received-bytes",
     .meaning = "Bytes read from connections since the start.",
     .number = [](const ServerState& s) { return s.service.received_bytes(); },
     .metric = {.family = "tubed_received_bytes_total",
                .type = MetricType::counter,
                .help = "Bytes read from connections."}},
    {.key = "sent-bytes",
     .meaning = "Bytes written to connections since the start.",
     .number = [](const ServerState& s) { return s.service.sent_bytes(); },
     .metric = {.family = "tubed_sent_bytes_total",
                .type = MetricType::counter,
                .help = "Bytes written to connections."}},
    {.key = "input-memory",
     .meaning = "Bytes of input that waits for its turn (limits.input_memory).",
     .number = [](const ServerState& s) { return s.service.input_bytes(); },
     .metric = {.family = "tubed_input_memory_bytes"}},
    // Metrics only.
    {.key = "",
     .meaning = "When the server was started, in seconds since 1970.",
     .seconds = [](const ServerState& s) { return s.service.identity().started_at; },
     .metric = {.family = "tubed_start_time_seconds"}},
    {.key = "",
     .meaning = "Memory of the process.",
     .number = [](const ServerState& s) { return s.service.resident_bytes(); },
     .metric = {.family = "tubed_resident_memory_bytes"}},
    {.key = "",
     .meaning = "Descriptors that the process has open: connections, listeners, the journal's "
                "files.",
     .number = [](const ServerState& s) { return s.service.open_descriptors(); },
     .metric = {.family = "tubed_open_descriptors"}},
    {.key = "",
     .meaning = "Descriptors that the process may have open (RLIMIT_NOFILE).",
     .number = [](const ServerState& s) { return s.service.descriptor_limit(); },
     .metric = {.family = "tubed_descriptor_limit"}},
    counted<Counter::put_draining>("tubed_refused_puts_total", "reason=\"draining\"",
                                   "Well-formed puts that were refused."),
    counted<Counter::put_too_big>("tubed_refused_puts_total", "reason=\"job_too_big\""),
    counted<Counter::put_job_memory>("tubed_refused_puts_total", "reason=\"job_memory\""),
    counted<Counter::put_journal_full>("tubed_refused_puts_total", "reason=\"journal_full\""),
    counted<Counter::tube_limit>("tubed_refused_tubes_total", "command=\"use\"",
                                 "Commands answered OUT_OF_MEMORY for limits.tubes, limits.watches "
                                 "or limits.client_watches."),
    counted<Counter::watch_limit>("tubed_refused_tubes_total", "command=\"watch\""),
    counted<Counter::bad_format>("tubed_malformed_commands_total", "reply=\"BAD_FORMAT\"",
                                 "Malformed commands."),
    counted<Counter::unknown_command>("tubed_malformed_commands_total",
                                      "reply=\"UNKNOWN_COMMAND\""),
    counted<Counter::expected_crlf>("tubed_malformed_commands_total", "reply=\"EXPECTED_CRLF\""),
    counted<Counter::client_idle>("tubed_closed_clients_total", "reason=\"idle\"",
                                  "Clients that the server closed, for timeouts.idle, "
                                  "timeouts.stall or limits.output_memory."),
    counted<Counter::client_stalled>("tubed_closed_clients_total", "reason=\"stall\""),
    counted<Counter::client_output_memory>("tubed_closed_clients_total",
                                           "reason=\"output_memory\""),
    {.key = "",
     .meaning = "How long a turn of the loop took: what an event waits for another at most.",
     .histogram = [](const ServerState& s) { return s.service.turn_times(); },
     .metric = {.family = "tubed_loop_turn_seconds", .type = MetricType::histogram}},
    {.key = "",
     .meaning = "1 while writing waits for room and puts are refused.",
     .flag = [](const ServerState& s) { return s.log.full; },
     .metric = {.family = "tubed_journal_full", .journal_only = true}},
    {.key = "",
     .meaning =
         "How long a commit took: until the disk had it, or, if journal.sync is not always, the "
         "kernel.",
     .histogram = [](const ServerState& s) { return s.log.commit_times; },
     .metric = {.family = "tubed_journal_commit_seconds",
                .type = MetricType::histogram,
                .journal_only = true}},
    {.key = "",
     .meaning = "How many changes a commit carried.",
     .histogram = [](const ServerState& s) { return s.log.commit_records; },
     .metric = {.family = "tubed_journal_commit_records",
                .type = MetricType::histogram,
                .journal_only = true}},
    {.key = "",
     .meaning = "How long it took to have the jobs back at the start.",
     .seconds = [](const ServerState& s) { return s.service.recovery_time(); },
     .metric = {.family = "tubed_recovery_seconds", .journal_only = true}},
};

}  // namespace

ServerState::ServerState(const Service& of)
    : service(of), queue(of.engine().info()), log(of.log().stats()), cpu(of.cpu_times()) {}

Rows<ServerState> job_rows() {
  return kJobs;
}

Rows<ServerState> beanstalkd_rows() {
  return kBeanstalkd;
}

Rows<ServerState> own_rows() {
  return kOwn;
}

std::string counter_key(const Command& command) {
  return "cmd-" + std::string(command.name);
}

std::string counter_meaning(const Command& command) {
  return "Well-formed " + std::string(command.name) + " commands since the start.";
}

}  // namespace tubed::commands
