// observed() has a copy of each row of the command table whose functions call TestMode with the
// number of the row, because a row's functions have no state of their own. The copies are made by
// the compiler.
#include "test_mode/table.h"

#include <array>
#include <utility>

#include "commands/table.h"
#include "test_mode/test_mode.h"
#include "test_mode/verbs.h"

namespace tubed::test_mode {

namespace {

using commands::ArgumentStorage;
using commands::BodyPlan;
using commands::Command;
using commands::CommandText;
using commands::Concerns;
using commands::kCommandCount;
using commands::ReplyText;
using commands::TextRule;

// --- The rows of the command table

template <std::size_t kRow>
Answer run_observed(Context& context, const ArgumentStorage& storage, Operation& operation) {
  return TestMode::of(context).run(commands::command_table()[kRow], context, storage, operation);
}

template <std::size_t kRow>
BodyPlan begin_observed(Context& context, const ArgumentStorage& storage) {
  return TestMode::of(context).begin_body(commands::command_table()[kRow], context, storage);
}

template <std::size_t... kRows>
std::array<Command, kCommandCount> observed_rows(std::index_sequence<kRows...>) {
  const auto observe = []<std::size_t kRow>(std::integral_constant<std::size_t, kRow>) {
    Command row = commands::command_table()[kRow];
    row.run = run_observed<kRow>;
    if (row.begin_body != nullptr) row.begin_body = begin_observed<kRow>;
    return row;
  };
  return {observe(std::integral_constant<std::size_t, kRows>())...};
}

// --- The test verbs

constexpr ReplyText kAdvance[] = {
    {"ADVANCED <now-ms>",
     "The clock has reached the time; everything that was due has been done, and what it woke has "
     "been answered."}};
constexpr ReplyText kNext[] = {kAdvance[0], {"NOT_FOUND", "Nothing is due at any time."}};
constexpr ReplyText kClock[] = {
    {"CLOCK <now-ms> <next-ms>", "The time, and the next deadline; 0: none."}};
constexpr ReplyText kReset[] = {{"RESET", "The server is as after its start."}};
constexpr ReplyText kSnapshot[] = {{"SNAPSHOT <jobs>", "How many jobs it has."},
                                   {"OUT_OF_MEMORY", "There are 100 snapshots already."}};
constexpr ReplyText kRestore[] = {{"RESTORED <jobs>", "How many jobs the queue has now."},
                                  {"NOT_FOUND", "There is no such snapshot."}};
constexpr ReplyText kDump[] = {{"OK <bytes>", "Followed by lines of JSON."}};
constexpr ReplyText kLoad[] = {
    {"LOADED <jobs>", "How many jobs were added."},
    {"BAD_FORMAT", "A line is malformed, or a job too big; nothing was added."},
    {"JOB_TOO_BIG", "The body exceeds 64 MiB; it was read and dropped."},
    {"OUT_OF_MEMORY",
     "The jobs do not fit into limits.job_memory, or the policies into limits.policies; nothing "
     "was added."}};
constexpr ReplyText kEvents[] = {{"OK <bytes>", "Followed by a YAML list of events."}};
constexpr ReplyText kAwait[] = {
    {"AWAITED <count>", "How many events of this word have happened since the last reset."},
    {"TIMED_OUT", "Fewer have happened in this many real milliseconds."},
    {"BAD_FORMAT", "There is no such event."}};
constexpr ReplyText kFault[] = {{"FAULT_SET", "The fault is set, or all are removed."},
                                {"BAD_FORMAT", "There is no such command or no such reply."},
                                {"OUT_OF_MEMORY", "There are 1,000 faults already."}};

constexpr CommandText text(std::string_view name, std::string_view summary,
                           std::span<const ReplyText> replies,
                           TextRule rule = TextRule::needed_word_known) {
  return {.name = name,
          .summary = summary,
          .replies = replies,
          .access = Access::admin,
          .concerns = Concerns::no_tube,
          .text_rule = rule,
          .place = stats::CounterPlace::last};
}

constexpr Command uncounted(Command row) {
  row.counter = kCommandCount;
  return row;
}

template <class Arguments, Answer (*Run)(Context&, const Arguments&)>
constexpr Command verb(const CommandText& text) {
  return uncounted(commands::command<Arguments, Run>(text));
}

template <class Arguments, Answer (*Run)(Context&, Operation&, const Arguments&)>
constexpr Command verb_in_slices(const CommandText& text) {
  return uncounted(commands::command_in_slices<Arguments, Run>(text));
}

template <class Arguments, bool (*Parse)(std::string_view, Arguments&)>
constexpr Command parsed_by(Command row) {
  row.parse = [](std::string_view line, ArgumentStorage& storage) {
    return Parse(line, *new (storage.bytes.data()) Arguments());
  };
  return row;
}

// "off", or all three arguments.
bool parse_fault(std::string_view line, FaultArguments& arguments) {
  if (line != "off") return protocol::parse_arguments(line, arguments);
  arguments.verb.text = line;
  return true;
}

constexpr std::array kVerbs = {
    verb_in_slices<AdvanceArguments, advance>(text(
        "test-advance",
        "Moves the clock on by this time, through every deadline on the way in order.", kAdvance)),
    verb<NoArguments, clock>(text("test-clock", "Shows the time and the next deadline.", kClock)),
    verb_in_slices<NoArguments, next>(
        text("test-next", "Moves the clock to the next deadline.", kNext)),
    verb<NoArguments, reset>(
        text("test-reset",
             "Removes all jobs, pauses and faults and begins ids, counters and the clock anew. "
             "Connections stay: each uses and watches \"default\" and holds no job.",
             kReset)),
    verb<NameArguments, snapshot>(text(
        "test-snapshot", "Keeps the jobs, the pauses and the clock under this name.", kSnapshot)),
    verb<NameArguments, restore>(
        text("test-restore", "Resets the server and gives it what a snapshot has kept.", kRestore)),
    verb<NoArguments, dump>(text(
        "test-dump",
        "Shows the clock, all tubes, connections and jobs, and the policies that clients have set, "
        "as lines of JSON.",
        kDump)),
    uncounted(commands::command_with_body<LoadArguments, load, begin_load>(
        text("test-load",
             "Adds the jobs of the body, as test-dump and tubectl export write them, and sets the "
             "policies and pauses of a dump.",
             kLoad))),
    verb<EventsArguments, events>(
        text("test-events",
             "Shows the events since the last reset, from this number on, the last 10,000 at most.",
             kEvents, TextRule::optional)),
    verb_in_slices<AwaitArguments, await>(text(
        "test-await",
        "Waits until this many events of this word have happened since the last reset.", kAwait)),
    parsed_by<FaultArguments, parse_fault>(verb<FaultArguments, fault>(
        text("test-fault",
             "Answers the next commands of this verb, or of any, with this reply instead of doing "
             "them; \"off\" alone removes all faults.",
             kFault))),
};

}  // namespace

std::span<const Command> verb_table() {
  return kVerbs;
}

const Command* observed(const Command& row) {
  static const auto rows = observed_rows(std::make_index_sequence<kCommandCount>());
  return &rows[row.counter];
}

}  // namespace tubed::test_mode
