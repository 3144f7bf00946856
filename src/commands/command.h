// Command: one row of the command table. Recognition, parsing, errors, counter, stats line,
// reference page and fuzz dictionary all come from the row.
//
// Parsing and running are two steps, so that a body can arrive in between.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "base/bytes.h"
#include "commands/tube_list_cache.h"
#include "engine/engine.h"
#include "protocol/answer.h"
#include "protocol/arguments.h"

namespace tubed::commands {

class Service;

using protocol::Answer;

// What a command does, for authorization.
enum class Access : std::uint8_t {
  any,      // needs no permission
  produce,  // puts jobs
  work,     // takes jobs and ends them
  inspect,  // shows jobs and counts
  admin,    // moves the jobs of others
};

// The tube that a command concerns.
enum class Concerns : std::uint8_t {
  no_tube,
  argument,  // the tube that it names
  used,      // the tube that the session uses
  watched,   // the tubes that the session watches
  job,       // the tube of the job that it names
};

// The state of a command between two of its slices; monostate: no command is between slices.
struct KickOperation {
  engine::Kick rest;
  std::uint64_t moved = 0;
};
struct TubeListOperation {
  std::uint64_t refreshes = 0;                          // slices that brought the list up to date
  std::shared_ptr<const TubeListCache::Snapshot> list;  // null while it is brought up to date
  std::size_t written = 0;                              // parts of it
};
using Operation = std::variant<std::monostate, KickOperation, TubeListOperation>;

inline bool in_progress(const Operation& operation) {
  return operation.index() != 0;
}

// What a handler works on.
struct Context {
  Service& service;
  engine::Engine& engine;
  SessionId session;
  Time now;
  Bytes body;         // of a command that has one
  bool peer_is_gone;  // the client will send nothing more: it is not made to wait
};

// What is done with a body whose line was well-formed.
struct BodyPlan {
  enum class Kind : std::uint8_t {
    accept,   // read it into Context::body
    skip,     // read past it, and answer with `refusal` after its line end
    discard,  // the same, but do not look at what is in place of its line end
  };
  Kind kind = Kind::accept;
  std::uint32_t bytes = 0;
  protocol::Status refusal = {};
};

// Room for the arguments of any command.
struct ArgumentStorage {
  alignas(std::uint64_t) std::array<std::byte, 48> bytes;
};

struct ArgumentText {
  std::string_view name;
  std::string_view type;
};

struct ReplyText {
  std::string_view reply;
  std::string_view meaning;
};

// What may stand behind the word of a command, and how its absence is answered.
// [notes: Lines and bodies]
enum class TextRule : std::uint8_t {
  none,               // nothing, not even a space
  needed,             // its arguments; the word alone is UNKNOWN_COMMAND
  needed_word_known,  // its arguments; the word alone is BAD_FORMAT
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
  bool in_beanstalkd_stats;  // its cmd-… line stands among beanstalkd's, not among tubed's own
  bool may_emit_facts;       // it waits while the log is congested

  bool (*parse)(std::string_view text, ArgumentStorage& storage);
  // `operation` is in progress when the command is run again.
  Answer (*run)(Context& context, const ArgumentStorage& storage, Operation& operation);
  BodyPlan (*begin_body)(Context& context, const ArgumentStorage& storage);  // null: has no body
};

// What a row says beside its types.
struct CommandText {
  std::string_view name;
  std::string_view summary;
  std::span<const ReplyText> replies;
  Access access;
  Concerns concerns;
  TextRule text_rule = TextRule::needed;  // a command without arguments has none, or ignores it
  bool in_beanstalkd_stats = true;
};

namespace detail {

template <class Arguments>
const Arguments& arguments_in(const ArgumentStorage& storage) {
  return *std::launder(reinterpret_cast<const Arguments*>(storage.bytes.data()));
}

template <class Arguments, auto Member>
constexpr ArgumentText argument_text(const protocol::Field<Member>& field) {
  using Type = std::remove_reference_t<decltype(std::declval<Arguments&>().*Member)>;
  return {field.name, protocol::describe(static_cast<const Type*>(nullptr))};
}

// The schema of `Arguments` as words for the reference.
template <class Arguments>
inline constexpr auto kArgumentTexts = std::apply(
    [](const auto&... fields) {
      return std::array<ArgumentText, sizeof...(fields)>{argument_text<Arguments>(fields)...};
    },
    Arguments::fields);

// Whether a value of this type stays valid when the read that brought it is over. Texts do not:
// they point into the buffer that all clients share.
template <class T>
inline constexpr bool kOutlivesItsRead =
    std::is_integral_v<T> || std::is_same_v<T, Seconds> || std::is_same_v<T, protocol::BodySize>;

template <class Arguments, auto Member>
constexpr bool outlives_its_read(const protocol::Field<Member>&) {
  return kOutlivesItsRead<std::remove_cvref_t<decltype(std::declval<Arguments&>().*Member)>>;
}

template <class Arguments>
inline constexpr bool kArgumentsOutliveTheirRead =
    std::apply([](const auto&... fields) { return (outlives_its_read<Arguments>(fields) && ...); },
               Arguments::fields);

template <class Arguments>
constexpr Command row(const CommandText& text) {
  static_assert(std::is_trivially_copyable_v<Arguments>);
  static_assert(sizeof(Arguments) <= sizeof(ArgumentStorage));
  static_assert(alignof(Arguments) <= alignof(ArgumentStorage));
  constexpr bool has_arguments = !detail::kArgumentTexts<Arguments>.empty();
  return {.name = text.name,
          .summary = text.summary,
          .replies = text.replies,
          .arguments = detail::kArgumentTexts<Arguments>,
          .access = text.access,
          .concerns = text.concerns,
          .text_rule = has_arguments || text.text_rule == TextRule::ignored ? text.text_rule
                                                                            : TextRule::none,
          .in_beanstalkd_stats = text.in_beanstalkd_stats,
          .may_emit_facts = true,
          .parse =
              [](std::string_view line, ArgumentStorage& storage) {
                return protocol::parse_arguments(line, *new (storage.bytes.data()) Arguments());
              },
          .run = nullptr,
          .begin_body = nullptr};
}

}  // namespace detail

// A row: the type of its arguments is its schema.
template <class Arguments, Answer (*Run)(Context&, const Arguments&)>
constexpr Command command(const CommandText& text) {
  Command row = detail::row<Arguments>(text);
  row.run = [](Context& context, const ArgumentStorage& storage, Operation&) {
    return Run(context, detail::arguments_in<Arguments>(storage));
  };
  return row;
}

// A row that may work in slices: `Run` keeps in the Operation what the next slice needs, and
// answers Unfinished, or a BlockPart that is not the last.
template <class Arguments, Answer (*Run)(Context&, Operation&, const Arguments&)>
constexpr Command command_in_slices(const CommandText& text) {
  static_assert(detail::kArgumentsOutliveTheirRead<Arguments>,
                "a later slice uses arguments whose read is over: they must own their text");
  Command row = detail::row<Arguments>(text);
  row.run = [](Context& context, const ArgumentStorage& storage, Operation& operation) {
    return Run(context, operation, detail::arguments_in<Arguments>(storage));
  };
  return row;
}

// A row whose line is followed by a body: `Begin` decides about it before it arrives.
template <class Arguments, Answer (*Run)(Context&, const Arguments&),
          BodyPlan (*Begin)(Context&, const Arguments&)>
constexpr Command command_with_body(const CommandText& text) {
  static_assert(
      detail::kArgumentsOutliveTheirRead<Arguments>,
      "the body may arrive after the read of its line: the arguments must own their text");
  Command row = command<Arguments, Run>(text);
  row.begin_body = [](Context& context, const ArgumentStorage& storage) {
    return Begin(context, detail::arguments_in<Arguments>(storage));
  };
  return row;
}

// The row of a command that never changes what is durable: it runs while the log is congested.
constexpr Command without_facts(Command row) {
  row.may_emit_facts = false;
  return row;
}

}  // namespace tubed::commands
