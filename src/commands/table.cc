// One row for each command: its name, a sentence about it, its replies, its access, the tube that
// it concerns, and whether it may emit a fact. The template that makes a row (command,
// command_with_body, command_in_slices) binds the struct of its arguments to its handler; a wrong
// combination does not compile. find_command() hashes the length and three characters of a name
// into a table that the compiler makes.
#include "commands/table.h"

#include "commands/handlers.h"

namespace tubed::commands {

namespace {

using stats::CounterPlace;

constexpr ReplyText kNotFoundJob{"NOT_FOUND", "There is no such job."};
constexpr ReplyText kNotHeld{"NOT_FOUND", "The client does not hold such a job."};
constexpr ReplyText kNoTube{"NOT_FOUND", "There is no such tube."};
constexpr ReplyText kNoneInState{"NOT_FOUND", "The used tube has no job in that state."};
constexpr ReplyText kFound{"FOUND <id> <bytes>", "The job, followed by its body."};
constexpr ReplyText kTooMany{"OUT_OF_MEMORY", "It would be one tube or watch too many."};
constexpr ReplyText kReserved{"RESERVED <id> <bytes>", "The job, followed by its body."};
constexpr ReplyText kDeadlineSoon{
    "DEADLINE_SOON",
    "The client holds a job in the last second of its TTR, and none can be given."};
constexpr ReplyText kWatching{"WATCHING <count>", "How many tubes are watched now."};
constexpr ReplyText kBlock{"OK <bytes>", "Followed by a YAML block."};

constexpr ReplyText kPut[] = {
    {"INSERTED <id>", "The job is in the queue."},
    {"INSERTED <id> <state> [<pri>]",
     "No job was added, because this job has the key of idp. The state is READY, DELAYED, BURIED, "
     "RESERVED or, within the key's seconds after its deletion, DELETED. With <pri>, it has the "
     "priority of this put from now on, which is more urgent."},
    {"EXPECTED_CRLF", "The body was not followed by CR LF; nothing was stored."},
    {"JOB_TOO_BIG", "The body exceeds limits.job_bytes; it was read and dropped."},
    {"DRAINING", "The server takes no new jobs."},
    {"OUT_OF_MEMORY", "Jobs use all of limits.job_memory; the body was read and dropped."}};
constexpr ReplyText kUse[] = {{"USING <tube>", "Puts go there now."}, kTooMany};
constexpr ReplyText kReserve[] = {
    kReserved, kDeadlineSoon, {"TIMED_OUT", "The client half-closed while it waited."}};
constexpr ReplyText kReserveTimeout[] = {
    kReserved, kDeadlineSoon, {"TIMED_OUT", "No job came in time, or the client half-closed."}};
constexpr ReplyText kReserveJob[] = {kReserved,
                                     {"NOT_FOUND", "There is no such job, or a client holds it."}};
constexpr ReplyText kDelete[] = {
    {"DELETED", "The job is gone."},
    {"NOT_FOUND", "There is no such job, or another client holds it."}};
constexpr ReplyText kRelease[] = {{"RELEASED", "The job is ready again, or delayed."}, kNotHeld};
constexpr ReplyText kBury[] = {{"BURIED", "The job rests until it is kicked."}, kNotHeld};
constexpr ReplyText kTouch[] = {{"TOUCHED", "The job's TTR starts again."}, kNotHeld};
constexpr ReplyText kWatch[] = {kWatching, kTooMany};
constexpr ReplyText kIgnore[] = {kWatching, {"NOT_IGNORED", "It is the only tube watched."}};
constexpr ReplyText kPeek[] = {kFound, kNotFoundJob};
constexpr ReplyText kPeekState[] = {kFound, kNoneInState};
constexpr ReplyText kKick[] = {{"KICKED <count>", "How many jobs became ready."}};
constexpr ReplyText kKickJob[] = {
    {"KICKED", "The job is ready."},
    {"NOT_FOUND", "There is no such job, or it is neither buried nor delayed."}};
constexpr ReplyText kBlockOnly[] = {kBlock};
constexpr ReplyText kStatsJob[] = {kBlock, kNotFoundJob};
constexpr ReplyText kStatsTube[] = {kBlock, kNoTube};
constexpr ReplyText kUsing[] = {{"USING <tube>", "The tube that puts go to."}};
constexpr ReplyText kPause[] = {{"PAUSED", "The pause counts from now."}, kNoTube};

constexpr ReplyText kDrain[] = {{"DRAINING", "Puts are refused from now on."}};
// A line with the longest tags.
constexpr std::uint32_t kPutLineBytes = 2048;
// A line with the longest name of a tube, and numbers or words.
constexpr std::uint32_t kNameLineBytes = 288;
// A line with two of the longest names of tubes.
constexpr std::uint32_t kTwoNamesLineBytes = 448;
// A line with filters, of which one may have the longest text with each byte encoded.
constexpr std::uint32_t kFiltersLineBytes = 1024;
// A line with 1,000 of the longest ids.
constexpr std::uint32_t kIdsLineBytes = 21'056;

constexpr ReplyText kPutInTube[] = {
    kPut[0],
    kPut[1],
    kPut[2],
    kPut[3],
    kPut[4],
    {"OUT_OF_MEMORY",
     "Jobs use all of limits.job_memory, or it would be one tube too many; the body was read and "
     "dropped."}};
constexpr ReplyText kCaps[] = {{"OK", "It counts from the next reply on."}};
constexpr ReplyText kReserveBatch[] = {
    {"RESERVED_BATCH <count>",
     "How many jobs follow, each as RESERVED <id> <bytes> and its body; 0 if no job is ready, "
     "none came in time, or another client removed the one that came. More bodies than "
     "limits.output_bytes are not given at once."},
    {"DEADLINE_SOON",
     "Only with seconds above 0: the client holds a job in the last second of its TTR, and none "
     "can be given. Without seconds, or with 0, the reply is RESERVED_BATCH 0."}};
constexpr ReplyText kDeleteBatch[] = {
    {"DELETED_BATCH <deleted> <not-found>",
     "How many were deleted, and how many do not exist or are held by another client."}};
constexpr ReplyText kTouchAll[] = {{"TOUCHED_ALL <count>", "How many jobs the client holds."}};
constexpr ReplyText kFlush[] = {{"FLUSHED <count>", "How many jobs were removed."}};
constexpr ReplyText kTruncate[] = {
    {"TRUNCATED <count>", "How many jobs were removed; reserved jobs are not counted."}, kNoTube};
constexpr ReplyText kListJobs[] = {
    {"OK <bytes>",
     "Followed by a YAML list of texts: `next` and the id from which the next page begins, 0 after "
     "the last page, and with filters `looked` and how many jobs this page has looked at; the "
     "names "
     "of the columns, with filters also `failures` (how many reservations of the job have ended "
     "without its deletion) and `dead-from` (- for none, or a tube that the client may not use); "
     "and a line for each job, at the end of which its tags are."}};
constexpr ReplyText kUndrain[] = {
    {"NOT_DRAINING", "Puts are accepted from now on."},
    {"DRAINING", "It is too late: drain mode has ended the server, which hands over and stops."}};

constexpr ReplyText kReload[] = {
    {"OK <bytes>",
     "Followed by a YAML block: `changed`, the list of the keys that have changed, also because a "
     "file that they name has other certificates or tokens; `needs-restart`, the list of those "
     "that differ and that only a restart applies."},
    {"NOT_RELOADED <reason>",
     "The settings, or a file that they name, have a mistake, or the "
     "server is stopping: nothing has changed."}};
constexpr ReplyText kReserveWithAbort[] = {
    kReserved, kDeadlineSoon, {"TIMED_OUT", "The client sent more, or half-closed."}};
constexpr ReplyText kReserveMode[] = {{"USING <mode>", "It counts from the next reserve on."}};
constexpr ReplyText kMoveJob[] = {
    {"MOVED", "The job is in the tube."},
    {"NOT_FOUND", "There is no such job, or another client holds it."},
    kTooMany};
constexpr ReplyText kMoveJobs[] = {{"MOVED <count>", "How many jobs were moved."}, kTooMany};
constexpr ReplyText kReprioritize[] = {{"REPRIORITIZED", "The job has the priority."},
                                       {"ALREADY_RESERVED", "A client holds the job."},
                                       {"NOT_FOUND", "There is no such job."}};
constexpr ReplyText kDeleteForce[] = {
    {"DELETED",
     "The job was deleted. A client that held it gets NOT_FOUND from its next command on it."},
    {"NOT_FOUND", "There is no such job."}};

constexpr ReplyText kStatsGroup[] = {
    kBlock, {"NOT_FOUND", "The group has no members, and no job waits for it."}};
constexpr ReplyText kTubePolicy[] = {
    {"OK <bytes>",
     "Without a key: each key with its value, and with its origin: wire, file or default."},
    {"POLICY_SET", "The value is in force."},
    {"OUT_OF_MEMORY", "It would be one value too many (limits.policies)."}};
constexpr ReplyText kWait[] = {
    {"DELETED <id>", "The job was deleted or flushed."},
    {"BURIED <id>", "The job is buried."},
    {"TIMED_OUT", "The job is ready, delayed or reserved, or the client half-closed."},
    {"NOT_FOUND",
     "There is no such job. It may have ended before, or have moved to a tube that the client may "
     "not use."}};

constexpr ReplyText kStatsTubes[] = {
    {"OK <bytes>",
     "Followed by a YAML list of texts: `next` and the number from which the next page begins, 0 "
     "after the last page; the names of the columns; and a line for each tube, in the order of "
     "list-tubes. A page shows one moment. If a tube is removed between two pages, another tube "
     "may be on neither."}};

constexpr ReplyText kListClients[] = {
    {"OK <bytes>",
     "Followed by a YAML list of texts: `next` and the session id from which the next page begins, "
     "0 after the last page; the names of the columns; and a line for each client, in the order of "
     "session ids. A page may be short, or empty. `id`: the session id, which a later client may "
     "have after this client; `address`: `<host>:<port>`, or `unix:<uid>:<pid>`, behind a proxy "
     "(proxy_protocol) the client's as the proxy reports it; `role`: with _ for "
     "white space, # and :; `used`: the tube that puts go to; `waiting`: 1 in a reserve or a wait; "
     "`held`: how many jobs the client holds; `idle`: for how many seconds it has sent nothing, "
     "and no wait of it has ended; `watched`: the tubes of list-tubes-watched with a comma "
     "between them, at most 20, then `+<count>` for the rest. - is an address or a role that is "
     "not known. A line ends with one more word, the tls-name, if a proxy has reported the common "
     "name of the client's certificate: with _ for white space, # and :."}};
constexpr ReplyText kStatsTubeTimes[] = {
    {"OK <bytes>",
     "Followed by a YAML list of texts: `next 0`; the names of the columns; and a line for each "
     "bucket of tubed_tube_put_to_reserve_seconds (`queue`) and "
     "tubed_tube_reserve_to_delete_seconds (`processing`): its upper bound in seconds, `more` for "
     "the last, and how many times are in it and in no bucket before it. A tube beyond "
     "http.max_tubes has no buckets."},
    kNoTube};

constexpr ReplyText kAuth[] = {
    {"AUTHENTICATED", "The client has the rights of the role of the token."},
    {"UNAUTHORIZED", "The token is wrong; the connection is closed."},
    {"OUT_OF_MEMORY",
     "As many clients have the role as its limits.connections allows; the connection is closed."}};

// Of peek, and of list-jobs, whose filters answer questions about bodies: whoever may list the jobs
// of a tube may look at their bodies.
constexpr Access kMayPeek = Access::inspect;

constexpr Command added_after_2_0(Command row) {
  row.place = CounterPlace::last;
  return row;
}

constexpr std::array<Command, kCommandCount> kRows = {
    command_with_body<PutArguments, put, begin_put>(
        {.name = "put",
         .summary = "Puts a job into the used tube; the body follows the line.",
         .replies = kPut,
         .access = Access::produce,
         .concerns = Concerns::used,
         .details = "aft con grp idp max ttl",
         .line_bytes = kPutLineBytes,
         .long_with_tags = true}),
    without_facts(
        command<JobArguments, peek>({"peek", "Shows a job.", kPeek, kMayPeek, Concerns::job})),
    without_facts(
        command<NoArguments, peek_ready>({"peek-ready", "Shows the used tube's next ready job.",
                                          kPeekState, Access::inspect, Concerns::used})),
    without_facts(command<NoArguments, peek_delayed>(
        {"peek-delayed", "Shows the used tube's delayed job with the least time left.", kPeekState,
         Access::inspect, Concerns::used})),
    without_facts(command<NoArguments, peek_buried>(
        {"peek-buried", "Shows the used tube's job that was buried first.", kPeekState,
         Access::inspect, Concerns::used})),
    without_facts(command<NoArguments, reserve>(
        {"reserve",
         "Reserves the most urgent job of the watched tubes; waits until a job is ready.", kReserve,
         Access::work, Concerns::watched})),
    without_facts(command<TimeoutArguments, reserve_with_timeout>(
        {"reserve-with-timeout", "Like reserve, but waits at most this number of seconds.",
         kReserveTimeout, Access::work, Concerns::watched, TextRule::needed_word_known})),
    command<JobArguments, remove>(
        {"delete", "Removes a ready, delayed or buried job, or a job that the client holds.",
         kDelete, Access::work, Concerns::job}),
    command<ReleaseArguments, release>(
        {"release", "Makes a held job ready or delayed again, with a new priority.", kRelease,
         Access::work, Concerns::job}),
    without_facts(command<TubeArguments, use>({.name = "use",
                                               .summary = "Sets the tube that puts go to.",
                                               .replies = kUse,
                                               .access = Access::produce,
                                               .concerns = Concerns::argument,
                                               .creates_tube = true})),
    without_facts(command<WatchArguments, watch>(
        {.name = "watch",
         .summary = "Adds a tube to the watch list, or sets its weight there (1).",
         .replies = kWatch,
         .access = Access::work,
         .concerns = Concerns::argument,
         .details = "weight",
         .creates_tube = true})),
    without_facts(command<TubeArguments, ignore>({"ignore", "Removes a tube from the watch list.",
                                                  kIgnore, Access::work, Concerns::no_tube})),
    command<BuryArguments, bury>({"bury", "Sets a held job aside until a client kicks it.", kBury,
                                  Access::work, Concerns::job}),
    command_in_slices<KickArguments, kick>(
        {"kick",
         "Makes up to this number of jobs of the used tube ready: buried jobs, or delayed jobs if "
         "the tube has no buried jobs.",
         kKick, Access::admin, Concerns::used}),
    without_facts(command<TouchArguments, touch>(
        {.name = "touch",
         .summary = "Restarts the TTR of a held job, or ends its reservation this number of "
                    "seconds from now (0 becomes 1).",
         .replies = kTouch,
         .access = Access::work,
         .concerns = Concerns::job,
         .details = "seconds"})),
    without_facts(command<NoArguments, stats>({"stats", "Shows the statistics of the server.",
                                               kBlockOnly, Access::inspect, Concerns::no_tube})),
    without_facts(command<JobArguments, stats_job>({"stats-job", "Shows the statistics of a job.",
                                                    kStatsJob, Access::inspect, Concerns::job,
                                                    TextRule::needed_word_known})),
    without_facts(command<TubeArguments, stats_tube>(
        {"stats-tube", "Shows the statistics of a tube.", kStatsTube, Access::inspect,
         Concerns::argument, TextRule::needed_word_known})),
    without_facts(command_in_slices<NoArguments, list_tubes>(
        {"list-tubes", "Lists all tubes.", kBlockOnly, Access::inspect, Concerns::no_tube})),
    without_facts(
        command<NoArguments, list_tube_used>({"list-tube-used", "Shows the tube that puts go to.",
                                              kUsing, Access::any, Concerns::no_tube})),
    without_facts(
        command<NoArguments, list_tubes_watched>({"list-tubes-watched", "Lists the watched tubes.",
                                                  kBlockOnly, Access::any, Concerns::no_tube})),
    command<PauseArguments, pause_tube>(
        {.name = "pause-tube",
         .summary =
             "Pauses a tube for this number of seconds: no job of it is reserved; 0 ends a pause.",
         .replies = kPause,
         .access = Access::admin,
         .concerns = Concerns::argument,
         .text_rule = TextRule::needed_word_known,
         .line_bytes = kNameLineBytes}),
    without_facts(command<JobArguments, reserve_job>(
        {"reserve-job", "Reserves one ready, delayed or buried job by its id.", kReserveJob,
         Access::work, Concerns::job, TextRule::needed_word_known, CounterPlace::own})),
    command<KickJobArguments, kick_job>(
        {"kick-job",
         "Makes one buried or delayed job ready, or delays it by this number of seconds from now.",
         kKickJob, Access::admin, Concerns::job, TextRule::needed, CounterPlace::own, "delay"}),
    without_facts(command<NoArguments, quit>({"quit",
                                              "Closes the connection.",
                                              {},
                                              Access::open,
                                              Concerns::no_tube,
                                              TextRule::ignored,
                                              CounterPlace::own})),
    without_facts(added_after_2_0(command<NoArguments, capabilities>(
        {"capabilities", "Lists the commands, and forms of commands, that beanstalkd lacks.",
         kBlockOnly, Access::open, Concerns::no_tube}))),
    without_facts(added_after_2_0(
        command<NoArguments, drain>({"drain", "Begins drain mode: the server takes no new jobs.",
                                     kDrain, Access::admin, Concerns::no_tube}))),
    without_facts(added_after_2_0(command<NoArguments, undrain>(
        {"undrain", "Ends drain mode.", kUndrain, Access::admin, Concerns::no_tube}))),
    added_after_2_0(command_in_slices<FlushArguments, flush_tube>(
        {.name = "flush-tube",
         .summary = "Removes all jobs of a tube, also from the clients that hold them, or this "
                    "number of its jobs in one state: first those that would be reserved first, "
                    "come due first, were buried first or were reserved first. The memory of all "
                    "jobs of a tube is free some ticks later.",
         .replies = kFlush,
         .access = Access::admin,
         .concerns = Concerns::argument,
         .details = "state",
         .line_bytes = kNameLineBytes})),
    added_after_2_0(command_in_slices<TubeInSlicesArguments, flush_buried>(
        {"flush-buried", "Removes the buried jobs of a tube.", kFlush, Access::admin,
         Concerns::argument})),
    added_after_2_0(
        command<TubeArguments, truncate>({"truncate",
                                          "Removes all jobs of a tube; clients can still delete a "
                                          "job that they hold, and nothing else.",
                                          kTruncate, Access::admin, Concerns::argument})),
    without_facts(added_after_2_0(command<ListJobsArguments, list_jobs>(
        {.name = "list-jobs",
         .summary = "Lists the jobs of a tube in a state, or in all, in the order of their ids, "
                    "from this id on and at most this many (100); or those that are given next. "
                    "The next page begins at the id after `next`, 0 at the end; a page may be "
                    "short, or empty. A job that is in the state from the first page to the last "
                    "is listed once. With filters, only the jobs that match all of them, and not "
                    "with next: a page ends also after limits.work_per_turn jobs that it has "
                    "looked at.",
         .replies = kListJobs,
         .access = kMayPeek,
         .concerns = Concerns::argument,
         .details = "filter",
         .line_bytes = kFiltersLineBytes}))),
    without_facts(added_after_2_0(command<NoArguments, peek_reserved>(
        {"peek-reserved", "Shows the used tube's job that was reserved first.", kPeekState,
         Access::inspect, Concerns::used}))),
    added_after_2_0(command_with_body<PutInTubeArguments, put_in_tube, begin_put_in_tube>(
        {.name = "put-in-tube",
         .summary = "Puts a job into a tube that the client need not use; the body follows the "
                    "line.",
         .replies = kPutInTube,
         .access = Access::produce,
         .concerns = Concerns::argument,
         .line_bytes = kPutLineBytes,
         .creates_tube = true})),
    without_facts(added_after_2_0(command<CapsArguments, set_caps>(
        {.name = "set-caps",
         .summary = "Sets what replies to this client show. Bit 0: the lines RESERVED and FOUND "
                    "end with the name of the tube. Bit 8: the line DRAINED, without a command, "
                    "before the server closes the connection because drain mode has ended it as "
                    "drain.exit says, and not by drain.timeout or another stop. Other bits have no "
                    "effect.",
         .replies = kCaps,
         .access = Access::any,
         .concerns = Concerns::no_tube,
         .details = "1 256"}))),
    without_facts(added_after_2_0(command_in_slices<ReserveBatchArguments, reserve_batch>(
        {.name = "reserve-batch",
         .summary = "Reserves up to this number of jobs, as reserve does one after the other. It "
                    "waits for the first job at most this number of seconds, or not at all.",
         .replies = kReserveBatch,
         .access = Access::work,
         .concerns = Concerns::watched,
         .details = "timeout"}))),
    added_after_2_0(command<DeleteBatchArguments, delete_batch>(
        {.name = "delete-batch",
         .summary = "Deletes each of these jobs, as delete does.",
         .replies = kDeleteBatch,
         .access = Access::work,
         .concerns = Concerns::job,
         .line_bytes = kIdsLineBytes})),
    without_facts(added_after_2_0(command_in_slices<NoArguments, touch_all>(
        {"touch-all", "Restarts the TTR of each job that the client holds.", kTouchAll,
         Access::work, Concerns::no_tube}))),
    added_after_2_0(command_in_slices<KickTubeArguments, kick_tube>(
        {.name = "kick-tube",
         .summary = "Makes up to this number of jobs of a tube ready: its buried or its delayed "
                    "jobs, first those that were buried first or come due first; without a state, "
                    "buried jobs, or delayed jobs if it has no buried jobs.",
         .replies = kKick,
         .access = Access::admin,
         .concerns = Concerns::argument,
         .line_bytes = kNameLineBytes})),
    without_facts(added_after_2_0(command<NoArguments, reserve_with_abort>(
        {"reserve-with-abort",
         "Like reserve, but any further input of the client ends the wait and is then served.",
         kReserveWithAbort, Access::work, Concerns::watched}))),
    without_facts(added_after_2_0(command<ModeArguments, reserve_mode>(
        {"reserve-mode",
         "Sets how the client's reserves choose among its watched tubes: fifo, the job that comes "
         "first of all; weighted, each tube as often as its weight says, compared with the others; "
         "weighted-fair, each tube for a time of work as its weight says, by the mean time from "
         "reserve to delete.",
         kReserveMode, Access::work, Concerns::watched, TextRule::needed_word_known}))),
    added_after_2_0(command<MoveJobArguments, move_job>(
        {.name = "move-job",
         .summary = "Moves a job to a tube, which may be its own. It keeps its state, priority and "
                    "delay, or gets both of these and is then ready or delayed. A job that the "
                    "client holds becomes ready.",
         .replies = kMoveJob,
         .access = Access::admin,
         .concerns = Concerns::job,
         .line_bytes = kNameLineBytes,
         .creates_tube = true})),
    added_after_2_0(command_in_slices<MoveJobsArguments, move_jobs>(
        {.name = "move-jobs",
         .summary = "Moves the jobs of a tube in this state to another tube, this many at most: "
                    "first those that would be reserved first, come due first or were buried "
                    "first. A move to the tube itself moves none.",
         .replies = kMoveJobs,
         .access = Access::admin,
         .concerns = Concerns::argument,
         .line_bytes = kTwoNamesLineBytes,
         .creates_tube = true})),
    added_after_2_0(command<ReprioritizeArguments, reprioritize>(
        {"reprioritize", "Gives another priority to a job that no client holds.", kReprioritize,
         Access::admin, Concerns::job})),
    added_after_2_0(command<JobArguments, delete_force>(
        {"delete-force", "Removes a job in any state, also from the client that holds it.",
         kDeleteForce, Access::admin, Concerns::job})),
    without_facts(added_after_2_0(command<GroupArguments, stats_group>(
        {"stats-group", "Shows how many members of a group are in each state.", kStatsGroup,
         Access::inspect, Concerns::no_tube, TextRule::needed_word_known}))),
    added_after_2_0(command<PolicyArguments, tube_policy>(
        {.name = "tube-policy",
         .summary =
             "Shows the policy of a tube, or sets the value of a key, which takes precedence "
             "over the settings; - takes it away.",
         .replies = kTubePolicy,
         .access = Access::admin,
         .concerns = Concerns::argument,
         .line_bytes = kTwoNamesLineBytes})),
    without_facts(added_after_2_0(command<WaitArguments, wait_for_job>(
        {"wait",
         "Waits until any client deletes, flushes or buries a job, at most this number of seconds; "
         "0: says whether it is buried.",
         kWait, Access::inspect, Concerns::job}))),
    without_facts(added_after_2_0(command<PageArguments, stats_tubes>(
        {"stats-tubes",
         "Shows counts of all tubes, a line for each, from this number on (0) and at most this "
         "many (100). A page has no line for a tube that the client may not use.",
         kStatsTubes, Access::inspect, Concerns::no_tube, TextRule::optional}))),
    without_facts(added_after_2_0(command<AuthArguments, auth>(
        {.name = "auth",
         .summary =
             "Gives the client the rights of a token. On a listener without auth = \"token\" it is "
             "an unknown command. A client may send it again, to change its role.",
         .replies = kAuth,
         .access = Access::open,
         .concerns = Concerns::no_tube,
         .details = "token"}))),
    without_facts(added_after_2_0(command<PageArguments, list_clients>(
        {"list-clients",
         "Lists the connected clients, a line for each, from this session id on (0) and at most "
         "this many (100). A client whose role is limited to some tubes sees the clients of its "
         "role only.",
         kListClients, Access::inspect, Concerns::no_tube, TextRule::optional}))),
    without_facts(added_after_2_0(command<TubeArguments, stats_tube_times>(
        {"stats-tube-times",
         "Shows how long the jobs of a tube waited and were worked on, as counts in buckets.",
         kStatsTubeTimes, Access::inspect, Concerns::argument, TextRule::needed_word_known}))),
    without_facts(added_after_2_0(command_in_slices<NoArguments, reload>(
        {"reload",
         "Reads the settings, certificates and tokens again, as SIGHUP does: all that is new is "
         "in force, or nothing.",
         kReload, Access::admin, Concerns::no_tube}))),
};
constexpr std::size_t kAuthRow = [] {
  std::size_t row = 0;
  while (kRows[row].name != "auth") ++row;
  return row;
}();

// The rows, each with its place among the counters.
constexpr std::array<Command, kCommandCount> kCommands = [] {
  std::array<Command, kCommandCount> rows = kRows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].counter = static_cast<std::uint8_t>(i);
  return rows;
}();

// An open-addressed table of the rows by name, made at compile time.
constexpr std::size_t kBuckets = 128;
constexpr std::uint8_t kNoRow = 0xff;

// The length and three bytes of a name distinguish most names, at the same cost for each name.
// Precondition: not empty.
constexpr std::size_t bucket_of(std::string_view name) {
  const std::size_t bytes = name.size();
  const auto at = [name](std::size_t i) {
    return std::size_t{static_cast<unsigned char>(name[i])};
  };
  return (bytes + at(0) + 5 * (at(bytes / 2) + at(bytes - 1))) % kBuckets;
}

constexpr std::array<std::uint8_t, kBuckets> kRowByBucket = [] {
  std::array<std::uint8_t, kBuckets> rows{};
  rows.fill(kNoRow);
  for (std::size_t row = 0; row < kCommands.size(); ++row) {
    if (row == kAuthRow) continue;
    std::size_t bucket = bucket_of(kCommands[row].name);
    while (rows[bucket] != kNoRow) bucket = (bucket + 1) % kBuckets;
    rows[bucket] = static_cast<std::uint8_t>(row);
  }
  return rows;
}();

constexpr std::size_t kLongestName = [] {
  std::size_t longest = 0;
  for (const Command& row : kCommands) longest = std::max(longest, row.name.size());
  return longest;
}();

constexpr bool names_are_unique() {
  for (std::size_t a = 0; a < kCommands.size(); ++a) {
    for (std::size_t b = a + 1; b < kCommands.size(); ++b) {
      if (kCommands[a].name == kCommands[b].name) return false;
    }
  }
  return true;
}
static_assert(names_are_unique());

}  // namespace

std::span<const Command, kCommandCount> command_table() {
  return kCommands;
}

const Command* find_command(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return nullptr;
  for (std::size_t bucket = bucket_of(name); kRowByBucket[bucket] != kNoRow;
       bucket = (bucket + 1) % kBuckets) {
    const Command& row = kCommands[kRowByBucket[bucket]];
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Command& auth_command() {
  return kCommands[kAuthRow];
}

std::string_view family_of(const Command& command) {
  switch (command.access) {
    case Access::produce:
      return "produce";
    case Access::work:
      return "work";
    case Access::inspect:
      return "inspect";
    case Access::admin:
      return "admin";
    case Access::open:
    case Access::any:
      break;
  }
  return {};
}

CommandCountTable command_counts() {
  CommandCountTable counts;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    counts[i] = {kCommands[i].name, kCommands[i].place};
  }
  return counts;
}

}  // namespace tubed::commands
