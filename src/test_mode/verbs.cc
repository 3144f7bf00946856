// The handlers of the test verbs. A verb that moves the clock or waits stores its end in its
// Operation, and runs again until TestMode has an answer.
#include "test_mode/verbs.h"

#include <fmt/format.h>

#include "commands/table.h"
#include "protocol/answer.h"
#include "test_mode/test_mode.h"

namespace tubed::test_mode {

using commands::BodyPlan;
using commands::TestOperation;
using protocol::Number;
using protocol::Status;
namespace word = protocol::word;

namespace {

constexpr std::uint32_t kMostLoadBytes = 64U << 20;

Answer go_on(Context& context, const Operation& operation) {
  return TestMode::of(context).advance(context.session, std::get<TestOperation>(operation).until);
}

Time tick_after(Context& context, std::uint64_t milliseconds) {
  return context.service.tick_time() + std::chrono::milliseconds(milliseconds);
}

}  // namespace

Answer advance(Context& context, Operation& operation, const AdvanceArguments& arguments) {
  if (!commands::in_progress(operation)) {
    const auto until =
        TestMode::of(context).time_after(std::chrono::milliseconds(arguments.time.count));
    if (!until) return Status{word::kBadFormat};
    operation = TestOperation{.until = *until};
  }
  return go_on(context, operation);
}

Answer next(Context& context, Operation& operation, const NoArguments&) {
  if (!commands::in_progress(operation)) {
    const auto until = TestMode::of(context).next_deadline();
    if (!until) return Status{word::kNotFound};
    operation = TestOperation{.until = *until};
  }
  return go_on(context, operation);
}

Answer clock(Context& context, const NoArguments&) {
  return TestMode::of(context).show_clock();
}

Answer reset(Context& context, const NoArguments&) {
  TestMode::of(context).reset();
  return Status{"RESET"};
}

Answer snapshot(Context& context, const NameArguments& arguments) {
  std::uint64_t jobs = 0;
  if (!TestMode::of(context).take_snapshot(arguments.name.text, jobs)) {
    return Status{word::kOutOfMemory};
  }
  return Number{"SNAPSHOT", jobs};
}

Answer restore(Context& context, const NameArguments& arguments) {
  const auto jobs = TestMode::of(context).restore(arguments.name.text);
  if (!jobs) return Status{word::kNotFound};
  return Number{"RESTORED", *jobs};
}

Answer dump(Context& context, const NoArguments&) {
  const std::string lines = TestMode::of(context).dump();
  return protocol::BlockPart{
      .block_bytes = lines.size(), .text = Bytes::copy_of(lines), .last = true};
}

BodyPlan begin_load(Context& context, const LoadArguments& arguments) {
  const std::uint32_t bytes = arguments.size.bytes;
  if (bytes > kMostLoadBytes) {
    return {.kind = BodyPlan::Kind::discard, .bytes = bytes, .refusal = {word::kJobTooBig}};
  }
  if (!context.engine.memory().claim(bytes)) {
    return {.kind = BodyPlan::Kind::skip, .bytes = bytes, .refusal = {word::kOutOfMemory}};
  }
  context.body = Bytes::allocate(bytes);
  if (context.body) return {.bytes = bytes};
  context.engine.memory().give_back(bytes);
  return {.kind = BodyPlan::Kind::skip, .bytes = bytes, .refusal = {word::kOutOfMemory}};
}

Answer load(Context& context, const LoadArguments& arguments) {
  context.engine.memory().give_back(arguments.size.bytes);
  const auto loaded = TestMode::of(context).load(context.body.view());
  if (loaded) return Number{"LOADED", *loaded};
  const bool is_full = loaded.error().kind == Error::Kind::no_space;
  return Status{is_full ? word::kOutOfMemory : word::kBadFormat};
}

Answer events(Context& context, const EventsArguments& arguments) {
  return protocol::Block{
      [&events = TestMode::of(context).events(), from = arguments.from.value_or(1),
       limit = arguments.limit.value_or(UINT64_MAX)](protocol::BlockSink& block) {
        events.visit(from, limit, [&](std::uint64_t number, const std::string& text) {
          block.item(fmt::format("{} {}", number, text));
        });
      }};
}

Answer await(Context& context, Operation& operation, const AwaitArguments& arguments) {
  if (!commands::in_progress(operation)) {
    const auto event = event_named(arguments.event.text);
    if (!event) return Status{word::kBadFormat};
    operation = TestOperation{.until = tick_after(context, arguments.milliseconds),
                              .event = static_cast<std::uint8_t>(*event)};
  }
  const auto& waiting = std::get<TestOperation>(operation);
  return TestMode::of(context).await(context, static_cast<Event>(waiting.event), arguments.count,
                                     waiting.until);
}

Answer fault(Context& context, const FaultArguments& arguments) {
  Faults& faults = TestMode::of(context).faults();
  const std::string_view verb = arguments.verb.text;
  if (arguments.reply.text.empty()) {
    faults.clear();
    return Status{"FAULT_SET"};
  }
  const auto fault = Faults::named(arguments.reply.text);
  const bool known = verb == Faults::kAny || commands::find_command(verb) != nullptr;
  if (!fault || !known) return Status{word::kBadFormat};
  if (!faults.add(verb, arguments.count, *fault)) return Status{word::kOutOfMemory};
  return Status{"FAULT_SET"};
}

}  // namespace tubed::test_mode
