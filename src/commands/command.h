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

#include "base/bytes.h"
#include "commands/tube_list.h"
#include "engine/engine.h"
#include "protocol/arguments.h"
#include "protocol/reply.h"

namespace tubed::commands {

class Service;

// How a handler left its command.
enum class Outcome : std::uint8_t {
  done,        // answered
  waiting,     // a notice will answer
  unfinished,  // did one slice of its work; to be run again in a later turn
  more,        // wrote a part of a long reply; to be run again as budget and output bounds allow
  quit,        // the conversation is over
};

// The state of a command that works in slices.
struct Slices {
  engine::Kick rest;
  std::uint64_t done = 0;
  std::shared_ptr<const TubeList::Snapshot> list;  // of which `done` parts are written
  bool begun = false;
};

// What a handler works on.
struct Context {
  Service& service;
  engine::Engine& engine;
  SessionId session;
  Time now;
  protocol::ReplyBuffer& replies;
  Slices& slices;
  Bytes body;         // of a command that has one
  bool peer_is_gone;  // the client will send nothing more: it is not made to wait
  bool& waiting;      // set while an answer is owed; a notice clears it
};

// What is to become of a body whose line was well-formed.
struct BodyPlan {
  std::uint32_t bytes = 0;
  std::string_view refusal;  // not empty: the body is swallowed, and this is the answer
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
  TextRule text_rule;
  bool in_beanstalkd_stats;  // its cmd-… line stands among beanstalkd's, not among tubed's own
  bool may_emit_facts;       // it waits while the keeper is congested

  bool (*parse)(std::string_view text, ArgumentStorage& storage);
  Outcome (*run)(Context& context, const ArgumentStorage& storage);
  BodyPlan (*begin_body)(Context& context, const ArgumentStorage& storage);  // null: has no body
};

// What a row says beside its types.
struct CommandText {
  std::string_view name;
  std::string_view summary;
  std::span<const ReplyText> replies;
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

}  // namespace detail

// A row: the type of its arguments is its schema.
template <class Arguments, Outcome (*Run)(Context&, const Arguments&)>
constexpr Command command(const CommandText& text) {
  static_assert(std::is_trivially_copyable_v<Arguments>);
  static_assert(sizeof(Arguments) <= sizeof(ArgumentStorage));
  static_assert(alignof(Arguments) <= alignof(ArgumentStorage));
  constexpr bool has_arguments = !detail::kArgumentTexts<Arguments>.empty();
  return {.name = text.name,
          .summary = text.summary,
          .replies = text.replies,
          .arguments = detail::kArgumentTexts<Arguments>,
          .text_rule = has_arguments || text.text_rule == TextRule::ignored ? text.text_rule
                                                                            : TextRule::none,
          .in_beanstalkd_stats = text.in_beanstalkd_stats,
          .may_emit_facts = true,
          .parse =
              [](std::string_view line, ArgumentStorage& storage) {
                return protocol::parse_arguments(line, *new (storage.bytes.data()) Arguments());
              },
          .run =
              [](Context& context, const ArgumentStorage& storage) {
                return Run(context, detail::arguments_in<Arguments>(storage));
              },
          .begin_body = nullptr};
}

// A row whose line is followed by a body: `Begin` decides about it before it arrives.
template <class Arguments, Outcome (*Run)(Context&, const Arguments&),
          BodyPlan (*Begin)(Context&, const Arguments&)>
constexpr Command command_with_body(const CommandText& text) {
  Command row = command<Arguments, Run>(text);
  row.begin_body = [](Context& context, const ArgumentStorage& storage) {
    return Begin(context, detail::arguments_in<Arguments>(storage));
  };
  return row;
}

// The row of a command that never changes what is durable: it runs while the keeper is congested.
constexpr Command without_facts(Command row) {
  row.may_emit_facts = false;
  return row;
}

}  // namespace tubed::commands
