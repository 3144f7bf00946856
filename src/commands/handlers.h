// The arguments and handlers of every command, by family: produce.cc, consume.cc, inspect.cc,
// admin.cc.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "commands/command.h"

namespace tubed::commands {

using protocol::field;
using protocol::schema;

struct NoArguments {
  static constexpr auto fields = schema();
};

struct PutArguments {
  Priority priority;
  TimeSpan delay;
  TimeSpan ttr;
  protocol::BodySize size;
  protocol::TagText tags;
  static constexpr auto fields =
      schema(field<&PutArguments::priority>("pri"), field<&PutArguments::delay>("delay"),
             field<&PutArguments::ttr>("ttr"), field<&PutArguments::size>("bytes"),
             field<&PutArguments::tags>("tags"));
};

struct PutInTubeArguments {
  protocol::TubeName tube;
  Priority priority;
  TimeSpan delay;
  TimeSpan ttr;
  protocol::BodySize size;
  protocol::TagText tags;
  static constexpr auto fields =
      schema(field<&PutInTubeArguments::tube>("tube"), field<&PutInTubeArguments::priority>("pri"),
             field<&PutInTubeArguments::delay>("delay"), field<&PutInTubeArguments::ttr>("ttr"),
             field<&PutInTubeArguments::size>("bytes"), field<&PutInTubeArguments::tags>("tags"));
};

struct AuthArguments {
  protocol::Token token;
  static constexpr auto fields = schema(field<&AuthArguments::token>("token"));
};

struct CapsArguments {
  std::uint32_t bits;
  static constexpr auto fields = schema(field<&CapsArguments::bits>("bits"));
};

struct TubeArguments {
  protocol::TubeName tube;
  static constexpr auto fields = schema(field<&TubeArguments::tube>("tube"));
};

struct WatchArguments {
  protocol::TubeName tube;
  std::optional<protocol::Bounded<1, 9999>> weight;
  static constexpr auto fields =
      schema(field<&WatchArguments::tube>("tube"), field<&WatchArguments::weight>("weight"));
};

// `default` is `fifo`.
struct ModeWords {
  static constexpr std::array<std::string_view, 4> kWords = {"fifo", "weighted", "weighted-fair",
                                                             "default"};
  static constexpr std::array<ReserveMode, 4> kValues = {
      ReserveMode::fifo, ReserveMode::weighted, ReserveMode::weighted_fair, ReserveMode::fifo};
  static constexpr std::string_view kDescription = "one of: fifo weighted weighted-fair default";
};

struct ModeArguments {
  protocol::OneOf<ModeWords> mode;
  static constexpr auto fields = schema(field<&ModeArguments::mode>("mode"));
};

// Whole seconds only. [compat: milliseconds]
struct TimeoutArguments {
  Seconds timeout;
  static constexpr auto fields = schema(field<&TimeoutArguments::timeout>("seconds"));
};

struct JobArguments {
  JobId id;
  static constexpr auto fields = schema(field<&JobArguments::id>("id"));
};

struct WaitArguments {
  TimeSpan timeout;
  JobId id;
  static constexpr auto fields =
      schema(field<&WaitArguments::timeout>("seconds"), field<&WaitArguments::id>("id"));
};

struct TouchArguments {
  JobId id;
  std::optional<TimeSpan> left;
  static constexpr auto fields =
      schema(field<&TouchArguments::id>("id"), field<&TouchArguments::left>("seconds"));
};

struct MoveJobArguments {
  JobId id;
  protocol::TubeName tube;
  std::optional<protocol::PriorityAndDelay> place;
  static constexpr auto fields =
      schema(field<&MoveJobArguments::id>("id"), field<&MoveJobArguments::tube>("tube"),
             field<&MoveJobArguments::place>("pri> <delay"));
};

struct ReprioritizeArguments {
  JobId id;
  Priority priority;
  static constexpr auto fields = schema(field<&ReprioritizeArguments::id>("id"),
                                        field<&ReprioritizeArguments::priority>("pri"));
};

// The states from which move-jobs moves jobs.
struct MovedWords {
  static constexpr std::array<std::string_view, 3> kWords = {"ready", "delayed", "buried"};
  static constexpr std::array<JobState, 3> kValues = {JobState::ready, JobState::delayed,
                                                      JobState::buried};
  static constexpr std::string_view kDescription = "one of: ready delayed buried";
};

struct MoveJobsArguments {
  protocol::TubeName from;
  protocol::OneOf<MovedWords> state;
  protocol::TubeName to;
  std::optional<std::uint32_t> bound;
  static constexpr bool kForFirstSlice = true;
  static constexpr auto fields =
      schema(field<&MoveJobsArguments::from>("tube"), field<&MoveJobsArguments::state>("state"),
             field<&MoveJobsArguments::to>("to"), field<&MoveJobsArguments::bound>("bound"));
};

struct KickJobArguments {
  JobId id;
  std::optional<TimeSpan> delay;
  static constexpr auto fields =
      schema(field<&KickJobArguments::id>("id"), field<&KickJobArguments::delay>("delay"));
};

struct ReserveBatchArguments {
  protocol::Bounded<1, 1000> count;
  std::optional<TimeSpan> timeout;
  static constexpr auto fields = schema(field<&ReserveBatchArguments::count>("count"),
                                        field<&ReserveBatchArguments::timeout>("seconds"));
};

struct DeleteBatchArguments {
  protocol::JobIds ids;
  static constexpr auto fields = schema(field<&DeleteBatchArguments::ids>("ids"));
};

struct ReleaseArguments {
  JobId id;
  Priority priority;
  TimeSpan delay;
  static constexpr auto fields =
      schema(field<&ReleaseArguments::id>("id"), field<&ReleaseArguments::priority>("pri"),
             field<&ReleaseArguments::delay>("delay"));
};

struct BuryArguments {
  JobId id;
  Priority priority;
  static constexpr auto fields =
      schema(field<&BuryArguments::id>("id"), field<&BuryArguments::priority>("pri"));
};

struct KickArguments {
  std::uint32_t bound;
  static constexpr auto fields = schema(field<&KickArguments::bound>("bound"));
};

struct StateWords {
  static constexpr std::array<std::string_view, 4> kWords = {"ready", "delayed", "buried",
                                                             "reserved"};
  static constexpr std::array<JobState, 4> kValues = {JobState::ready, JobState::delayed,
                                                      JobState::buried, JobState::reserved};
  static constexpr std::string_view kDescription = "one of: ready delayed buried reserved";
};

struct FlushArguments {
  protocol::TubeName tube;
  std::optional<protocol::OneOf<StateWords>> state;
  std::optional<std::uint32_t> bound;
  static constexpr bool kForFirstSlice = true;
  static constexpr auto fields =
      schema(field<&FlushArguments::tube>("tube"), field<&FlushArguments::state>("state"),
             field<&FlushArguments::bound>("bound"));
};

struct TubeInSlicesArguments {
  protocol::TubeName tube;
  static constexpr bool kForFirstSlice = true;
  static constexpr auto fields = schema(field<&TubeInSlicesArguments::tube>("tube"));
};

// The states from which kick-tube takes jobs.
struct KickedWords {
  static constexpr std::array<std::string_view, 2> kWords = {"buried", "delayed"};
  static constexpr std::array<JobState, 2> kValues = {JobState::buried, JobState::delayed};
  static constexpr std::string_view kDescription = "one of: buried delayed";
};

struct KickTubeArguments {
  protocol::TubeName tube;
  std::uint32_t bound;
  std::optional<protocol::OneOf<KickedWords>> state;
  static constexpr bool kForFirstSlice = true;
  static constexpr auto fields =
      schema(field<&KickTubeArguments::tube>("tube"), field<&KickTubeArguments::bound>("bound"),
             field<&KickTubeArguments::state>("state"));
};

// The jobs that list-jobs lists.
struct ListedJobs {
  std::optional<JobState> state = {};  // empty: any
  bool waiting_for_group = false;      // of the delayed jobs, those that wait for a group
  bool next = false;                   // the ready jobs, in the order in which they are given
};

struct ListedWords {
  static constexpr std::array<std::string_view, 7> kWords = {
      "ready", "delayed", "buried", "reserved", "held", "all", "next"};
  static constexpr std::array<ListedJobs, 7> kValues = {
      {{JobState::ready},
       {JobState::delayed},
       {JobState::buried},
       {JobState::reserved},
       {.state = JobState::delayed, .waiting_for_group = true},
       {},
       {.next = true}}};
  static constexpr std::string_view kDescription =
      "one of: ready delayed buried reserved held all next";
};

// In an order that leaves few gaps between the members.
struct ListJobsArguments {
  protocol::TubeName tube;
  protocol::FilterText filters;
  std::optional<JobId> from;
  std::optional<protocol::Bounded<1, 1000>> limit;
  protocol::OneOf<ListedWords> listed;
  static constexpr auto fields =
      schema(field<&ListJobsArguments::tube>("tube"), field<&ListJobsArguments::listed>("state"),
             field<&ListJobsArguments::from>("from"), field<&ListJobsArguments::limit>("limit"),
             field<&ListJobsArguments::filters>("filters"));
};

struct GroupArguments {
  protocol::GroupName name;
  static constexpr auto fields = schema(field<&GroupArguments::name>("group"));
};

struct PolicyArguments {
  protocol::TubeName tube;
  std::optional<protocol::PolicySetting> value;
  static constexpr auto fields =
      schema(field<&PolicyArguments::tube>("tube"), field<&PolicyArguments::value>("key> <value"));
};

// stats-tubes and list-clients.
struct PageArguments {
  std::optional<std::uint64_t> from;
  std::optional<protocol::Bounded<1, 1000>> limit;
  static constexpr auto fields =
      schema(field<&PageArguments::from>("from"), field<&PageArguments::limit>("limit"));
};

struct PauseArguments {
  protocol::SpacedTubeName tube;
  TimeSpan delay;
  static constexpr auto fields =
      schema(field<&PauseArguments::tube>("tube"), field<&PauseArguments::delay>("delay"));
};

// Producing [protocol: Producer Commands]
BodyPlan begin_put(Context& context, const PutArguments& arguments);
Answer put(Context& context, const PutArguments& arguments);
BodyPlan begin_put_in_tube(Context& context, const PutInTubeArguments& arguments);
Answer put_in_tube(Context& context, const PutInTubeArguments& arguments);
Answer use(Context& context, const TubeArguments& arguments);

// Consuming [protocol: Worker Commands; notes: reserve-job]
Answer reserve(Context& context, const NoArguments& arguments);
Answer reserve_with_timeout(Context& context, const TimeoutArguments& arguments);
Answer reserve_job(Context& context, const JobArguments& arguments);
Answer reserve_with_abort(Context& context, const NoArguments& arguments);
Answer reserve_batch(Context& context, Operation& operation,
                     const ReserveBatchArguments& arguments);
Answer delete_batch(Context& context, const DeleteBatchArguments& arguments);
Answer touch_all(Context& context, Operation& operation, const NoArguments& arguments);
Answer set_caps(Context& context, const CapsArguments& arguments);
Answer remove(Context& context, const JobArguments& arguments);
Answer release(Context& context, const ReleaseArguments& arguments);
Answer bury(Context& context, const BuryArguments& arguments);
Answer touch(Context& context, const TouchArguments& arguments);
Answer watch(Context& context, const WatchArguments& arguments);
Answer reserve_mode(Context& context, const ModeArguments& arguments);
Answer ignore(Context& context, const TubeArguments& arguments);

// The reply to a reserve, or to a wait for a job.
Answer answer_of(engine::Notice notice);

// Inspecting [protocol: Other Commands]
Answer peek(Context& context, const JobArguments& arguments);
Answer peek_ready(Context& context, const NoArguments& arguments);
Answer peek_delayed(Context& context, const NoArguments& arguments);
Answer peek_buried(Context& context, const NoArguments& arguments);
Answer peek_reserved(Context& context, const NoArguments& arguments);
Answer wait_for_job(Context& context, const WaitArguments& arguments);
Answer list_jobs(Context& context, const ListJobsArguments& arguments);
Answer stats(Context& context, const NoArguments& arguments);
Answer stats_job(Context& context, const JobArguments& arguments);
Answer stats_tube(Context& context, const TubeArguments& arguments);
Answer stats_tubes(Context& context, const PageArguments& arguments);
Answer stats_tube_times(Context& context, const TubeArguments& arguments);
Answer stats_group(Context& context, const GroupArguments& arguments);
Answer list_clients(Context& context, const PageArguments& arguments);
Answer list_tubes(Context& context, Operation& operation, const NoArguments& arguments);
Answer list_tube_used(Context& context, const NoArguments& arguments);
Answer list_tubes_watched(Context& context, const NoArguments& arguments);
Answer capabilities(Context& context, const NoArguments& arguments);
Answer quit(Context& context, const NoArguments& arguments);
Answer auth(Context& context, const AuthArguments& arguments);

// Administering [protocol: Other Commands]
Answer kick(Context& context, Operation& operation, const KickArguments& arguments);
Answer kick_tube(Context& context, Operation& operation, const KickTubeArguments& arguments);
Answer kick_job(Context& context, const KickJobArguments& arguments);
Answer flush_tube(Context& context, Operation& operation, const FlushArguments& arguments);
Answer flush_buried(Context& context, Operation& operation, const TubeInSlicesArguments& arguments);
Answer truncate(Context& context, const TubeArguments& arguments);
Answer move_job(Context& context, const MoveJobArguments& arguments);
Answer move_jobs(Context& context, Operation& operation, const MoveJobsArguments& arguments);
Answer reprioritize(Context& context, const ReprioritizeArguments& arguments);
Answer delete_force(Context& context, const JobArguments& arguments);
Answer pause_tube(Context& context, const PauseArguments& arguments);
Answer tube_policy(Context& context, const PolicyArguments& arguments);
Answer drain(Context& context, const NoArguments& arguments);
Answer undrain(Context& context, const NoArguments& arguments);
Answer reload(Context& context, Operation& operation, const NoArguments& arguments);

}  // namespace tubed::commands
