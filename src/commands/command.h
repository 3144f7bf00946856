// Command: one row of the command table.
//
// The row defines everything about a command: its word, how its arguments are parsed, how a
// malformed line is answered, its counter and line of stats, its part of the reference page, and
// its entries in the fuzz dictionary. A command runs in up to three steps, which are functions of
// the row:
//
// 1. `parse` reads the arguments of the line into an ArgumentStorage.
// 2. If the row has `begin_body`, it decides about the body before the body arrives: read it, skip
//    it, or discard it.
// 3. `run` does the command and returns an Answer. A command in slices is run again, with the same
//    arguments and its Operation, until its answer is complete.
//
// Steps may happen in different reads and ticks, so the arguments of a command with a body or with
// slices own their text. The templates below check that, and build the rows from the types of the
// handlers.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "commands/reload_result.h"
#include "commands/tube_list_cache.h"
#include "engine/engine.h"
#include "facts/role.h"
#include "protocol/answer.h"
#include "protocol/arguments.h"
#include "stats/counters.h"

namespace tubed::commands {

class Principal;
class Service;

using protocol::Answer;

// The tube that a command concerns.
enum class Concerns : std::uint8_t {
  no_tube,
  argument,  // the tube that it names
  used,      // the tube that the session uses
  watched,   // the tubes that the session watches
  job,       // the tube of the job that it names
};

// The states of commands between two of their slices.
//
// kick, kick-tube, flush-tube and flush-buried.
struct JobsOperation {
  engine::Slices rest;
  std::uint64_t done = 0;
};
// move-jobs.
struct MoveOperation {
  engine::Slices rest;
  std::string to;
  std::uint64_t done = 0;
};
struct TubeListOperation {
  std::uint64_t refreshes = 0;                          // slices so far that updated the list
  std::shared_ptr<const TubeListCache::Snapshot> list;  // null while it is being updated
  std::size_t written = 0;                              // how many of its parts
};
// touch-all.
struct TouchOperation {
  std::vector<JobId> jobs;  // reserved by the client when the command began
  std::size_t next = 0;     // index of the next to touch
  std::uint64_t touched = 0;
};
// A reserve-batch that has waited, and was given this job.
struct BatchOperation {
  engine::JobBody first;
};
// reload.
struct ReloadOperation {
  std::shared_ptr<ReloadResult> result;  // null: the reload is pending
  bool closes = false;                   // the reload has taken the client's role
};
// A command that test mode delays (test_mode/), until a time or an event.
struct TestOperation {
  Time until;
  std::uint8_t event = 0;  // the event that it waits for
};
using Operation = std::variant<std::monostate, JobsOperation, MoveOperation, TubeListOperation,
                               TouchOperation, BatchOperation, ReloadOperation, TestOperation>;

inline bool in_progress(const Operation& operation) {
  return operation.index() != 0;
}

// The parameters that every handler gets.
struct Context {
  Service& service;
  engine::Engine& engine;
  SessionId session;
  Time now;
  Bytes body;     // null if the command has no body
  bool may_wait;  // false: the client has half-closed, or the server is stopping

  // The principal of the session; null: it may do everything. O(1).
  [[gnu::cold]] Principal* principal() const;
};

// The decision about a body whose line was well-formed.
struct BodyPlan {
  enum class Kind : std::uint8_t {
    accept,   // read it into Context::body
    skip,     // ignore its bytes, and answer with `refusal` after its line end
    discard,  // as `skip`, but do not check that CR LF follows the body
  };
  Kind kind = Kind::accept;
  bool has_text = true;  // false: no argument refers to text
  std::uint32_t bytes = 0;
  protocol::Status refusal = {};
};

// The names in the arguments of a command, and the length of its body. They refer to the text of
// the arguments.
struct Named {
  std::array<std::string_view, 2> tubes = {};  // in the order of the line; empty: none
  std::string_view next_tube = {};  // where jobs may go when they are dead or expired; empty: none
  std::optional<JobId> job = std::nullopt;
  std::optional<PolicyKey> policy = std::nullopt;  // to which it gives a value
  bool shows = false;  // of a row with `shows_alone`: it changes nothing
  std::uint32_t body_bytes = 0;
};

// Room for the arguments of any command.
struct ArgumentStorage {
  alignas(std::uint64_t) std::array<std::byte, 64> bytes;
};

struct ArgumentText {
  std::string_view name;
  std::string_view type;
  bool optional = false;
};

struct ReplyText {
  std::string_view reply;
  std::string_view meaning;
};

// The text that may follow the word of a command, and the answer if it is missing.
// [notes: Lines and bodies]
enum class TextRule : std::uint8_t {
  none,               // nothing, not even a space
  needed,             // its arguments; the word alone is UNKNOWN_COMMAND
  needed_word_known,  // its arguments; the word alone is BAD_FORMAT
  optional,           // its arguments or nothing; `parse` reads the empty text
  ignored,            // anything
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::span<const ReplyText> replies;
  std::span<const ArgumentText> arguments;
  Access access;
  Concerns concerns;
  TextRule text_rule;
  stats::CounterPlace place;
  std::string_view details;  // its forms that beanstalkd lacks, for `capabilities`, space between
  bool creates_tube;         // the last tube that it names, if no tube has that name
  bool shows_alone;          // without its optional arguments it changes nothing: `inspect` may
  bool may_emit_facts;       // it waits while the log is congested
  std::uint8_t counter;      // its place among the counters; kCommandCount: it is not counted

  std::uint32_t line_bytes;         // a line may be that long, if limits.line_bytes is less
  bool long_with_tags;              // only if a tag begins within limits.line_bytes
  std::uint8_t fields_before_size;  // fields before the length of its body, if it has one

  bool (*parse)(std::string_view text, ArgumentStorage& storage);
  // `operation` is in progress when the command is run again.
  Answer (*run)(Context& context, const ArgumentStorage& storage, Operation& operation);
  BodyPlan (*begin_body)(Context& context,
                         const ArgumentStorage& storage);  // null: the command has no body
  Named (*named)(const ArgumentStorage& storage);
  // The memory for jobs that begin_body() has claimed for a body that it has accepted.
  std::uint32_t (*claimed)(const ArgumentStorage& storage);
};

// A member that has to be given: without it, the row does not compile.
template <class T>
class Given {
 public:
  constexpr Given(T value) : value_(value) {}
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

// The texts and flags of a row that its types do not give.
struct CommandText {
  std::string_view name;
  std::string_view summary;
  std::span<const ReplyText> replies;
  Given<Access> access;
  Given<Concerns> concerns;
  TextRule text_rule = TextRule::needed;  // without arguments: `none`, or `ignored`
  stats::CounterPlace place = stats::CounterPlace::beanstalkd;
  std::string_view details = {};
  std::uint32_t line_bytes = 0;
  bool long_with_tags = false;
  bool creates_tube = false;
};

// The arguments that a row has parsed. Precondition: `Arguments` is the type of the row.
template <class Arguments>
const Arguments& arguments_in(const ArgumentStorage& storage) {
  return *std::launder(reinterpret_cast<const Arguments*>(storage.bytes.data()));
}

// The tags of a put, including the milliseconds of its TTR.
template <class Arguments>
JobTags tags_of_put(const Arguments& arguments) {
  JobTags tags = protocol::tags_of(arguments.tags);
  tags.ttr_short_by_ms = arguments.ttr.short_by_ms;
  return tags;
}

// The bytes of memory that the body and its tags count as.
template <class Arguments>
std::uint32_t claimed_memory(const Arguments& arguments) {
  if constexpr (requires { arguments.tags; }) {
    return arguments.size.bytes + engine::tags_memory(tags_of_put(arguments));
  } else {
    return arguments.size.bytes;
  }
}

namespace detail {

template <class Arguments, auto Member>
constexpr ArgumentText argument_text(const protocol::Field<Member>& field) {
  using Type = std::remove_reference_t<decltype(std::declval<Arguments&>().*Member)>;
  return {field.name, protocol::describe(static_cast<const Type*>(nullptr)),
          protocol::kMayBeMissing<Type>};
}

// The schema of `Arguments` as words for the reference.
template <class Arguments>
inline constexpr auto kArgumentTexts = std::apply(
    [](const auto&... fields) {
      return std::array<ArgumentText, sizeof...(fields)>{argument_text<Arguments>(fields)...};
    },
    Arguments::fields);

// True if a value of this type stays valid after the read that brought it. A text does not: it
// points into the buffer that all clients share.
template <class T>
inline constexpr bool kOutlivesItsRead =
    std::is_integral_v<T> || std::is_same_v<T, Seconds> || std::is_same_v<T, TimeSpan> ||
    std::is_same_v<T, protocol::Milliseconds> || std::is_same_v<T, protocol::BodySize>;
template <std::uint32_t kLeast, std::uint32_t kMost>
inline constexpr bool kOutlivesItsRead<protocol::Bounded<kLeast, kMost>> = true;
template <class T>
inline constexpr bool kOutlivesItsRead<std::optional<T>> = kOutlivesItsRead<T>;

// The arguments are read in the first slice only: the Operation has what later slices need.
template <class Arguments>
inline constexpr bool kForFirstSlice = requires {
  Arguments::kForFirstSlice;
};

template <class Arguments, auto Member>
constexpr bool outlives_its_read(const protocol::Field<Member>&) {
  return kOutlivesItsRead<std::remove_cvref_t<decltype(std::declval<Arguments&>().*Member)>>;
}

template <class Arguments>
inline constexpr bool kArgumentsOutliveTheirRead =
    std::apply([](const auto&... fields) { return (outlives_its_read<Arguments>(fields) && ...); },
               Arguments::fields);

// The tube to which a dead or expired job goes; empty: none.
constexpr std::string_view tube_named_by(std::string_view place) {
  const bool is_tube = place != kToBuried && place != kToNowhere && place != kNoPolicyValue;
  return is_tube ? place : std::string_view();
}

// Returns the number of fields before the length of the body.
template <class Arguments>
constexpr std::uint8_t fields_before_size() {
  std::uint8_t count = 0;
  bool found = false;
  const auto look = [&]<auto Member>(const protocol::Field<Member>&) {
    using Type = std::remove_cvref_t<decltype(std::declval<Arguments&>().*Member)>;
    found = found || std::is_same_v<Type, protocol::BodySize>;
    if (!found) ++count;
  };
  std::apply([&](const auto&... fields) { (look(fields), ...); }, Arguments::fields);
  return count;
}

inline void name(protocol::TubeName tube, Named& named) {
  (named.tubes[0].empty() ? named.tubes[0] : named.tubes[1]) = tube.text;
}
inline void name(JobId job, Named& named) {
  named.job = job;
}
inline void name(protocol::BodySize size, Named& named) {
  named.body_bytes = size.bytes;
}
inline void name(const protocol::TagText& tags, Named& named) {
  if (!tags.text.empty()) named.next_tube = tube_named_by(protocol::tags_of(tags).dead);
}
inline void name(const protocol::PolicySetting& set, Named& named) {
  const bool names_tube = set.key == PolicyKey::dead || set.key == PolicyKey::expired;
  if (names_tube) named.next_tube = tube_named_by(set.value);
  if (set.value != kNoPolicyValue) named.policy = set.key;
}
inline void name(const std::optional<protocol::PolicySetting>& set, Named& named) {
  if (set) name(*set, named);
  named.shows = !set;
}
// All other types name nothing.
template <class T>
inline constexpr bool kNames =
    std::is_same_v<T, protocol::TubeName> || std::is_same_v<T, protocol::SpacedTubeName> ||
    std::is_same_v<T, JobId> || std::is_same_v<T, protocol::BodySize> ||
    std::is_same_v<T, protocol::TagText> ||
    std::is_same_v<T, std::optional<protocol::PolicySetting>>;

template <class Arguments, auto Member>
constexpr bool is_optional_change(const protocol::Field<Member>&) {
  return std::is_same_v<std::remove_cvref_t<decltype(std::declval<Arguments&>().*Member)>,
                        std::optional<protocol::PolicySetting>>;
}

template <class Arguments>
inline constexpr bool kShowsAlone =
    std::apply([](const auto&... fields) { return (is_optional_change<Arguments>(fields) || ...); },
               Arguments::fields);

template <class Arguments>
Named named(const ArgumentStorage& storage) {
  const Arguments& arguments = arguments_in<Arguments>(storage);
  Named named;
  const auto look = [&]<auto Member>(const protocol::Field<Member>&) {
    using Type = std::remove_cvref_t<decltype(arguments.*Member)>;
    if constexpr (kNames<Type>) name(arguments.*Member, named);
  };
  std::apply([&](const auto&... fields) { (look(fields), ...); }, Arguments::fields);
  return named;
}

template <class Arguments>
constexpr Command row(const CommandText& text) {
  static_assert(std::is_trivially_copyable_v<Arguments>);
  static_assert(sizeof(Arguments) <= sizeof(ArgumentStorage));
  static_assert(alignof(Arguments) <= alignof(ArgumentStorage));
  constexpr bool has_arguments = !kArgumentTexts<Arguments>.empty();
  return {.name = text.name,
          .summary = text.summary,
          .replies = text.replies,
          .arguments = kArgumentTexts<Arguments>,
          .access = text.access,
          .concerns = text.concerns,
          .text_rule = has_arguments || text.text_rule == TextRule::ignored ? text.text_rule
                                                                            : TextRule::none,
          .place = text.place,
          .details = text.details,
          .creates_tube = text.creates_tube,
          .shows_alone = kShowsAlone<Arguments>,
          .may_emit_facts = true,
          .counter = 0,
          .line_bytes = text.line_bytes,
          .long_with_tags = text.long_with_tags,
          .fields_before_size = fields_before_size<Arguments>(),
          .parse =
              [](std::string_view line, ArgumentStorage& storage) {
                return protocol::parse_arguments(line, *new (storage.bytes.data()) Arguments());
              },
          .run = nullptr,
          .begin_body = nullptr,
          .named = named<Arguments>,
          .claimed = nullptr};
}

}  // namespace detail

// A row: the type of its arguments is its schema.
template <class Arguments, Answer (*Run)(Context&, const Arguments&)>
constexpr Command command(const CommandText& text) {
  Command row = detail::row<Arguments>(text);
  row.run = [](Context& context, const ArgumentStorage& storage, Operation&) {
    return Run(context, arguments_in<Arguments>(storage));
  };
  return row;
}

// A row that may work in slices: `Run` keeps in the Operation what the next slice needs, and
// answers Unfinished, or a BlockPart that is not the last.
template <class Arguments, Answer (*Run)(Context&, Operation&, const Arguments&)>
constexpr Command command_in_slices(const CommandText& text) {
  static_assert(detail::kArgumentsOutliveTheirRead<Arguments> || detail::kForFirstSlice<Arguments>,
                "a later slice uses arguments whose read is over: they must own their text");
  Command row = detail::row<Arguments>(text);
  row.run = [](Context& context, const ArgumentStorage& storage, Operation& operation) {
    return Run(context, operation, arguments_in<Arguments>(storage));
  };
  return row;
}

// A row whose line is followed by a body: `Begin` decides about it before it arrives.
template <class Arguments, Answer (*Run)(Context&, const Arguments&),
          BodyPlan (*Begin)(Context&, const Arguments&)>
constexpr Command command_with_body(const CommandText& text) {
  Command row = command<Arguments, Run>(text);
  row.begin_body = [](Context& context, const ArgumentStorage& storage) {
    return Begin(context, arguments_in<Arguments>(storage));
  };
  row.claimed = [](const ArgumentStorage& storage) {
    return claimed_memory(arguments_in<Arguments>(storage));
  };
  return row;
}

// The row of a command that never changes what is durable: it runs while the log is congested.
constexpr Command without_facts(Command row) {
  row.may_emit_facts = false;
  return row;
}

}  // namespace tubed::commands
