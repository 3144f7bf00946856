// The arguments and handlers of the test verbs.
#pragma once

#include "commands/handlers.h"

namespace tubed::test_mode {

using commands::Context;
using commands::NoArguments;
using commands::Operation;
using protocol::Answer;
using protocol::field;
using protocol::schema;

struct AdvanceArguments {
  protocol::Milliseconds time;
  static constexpr auto fields = schema(field<&AdvanceArguments::time>("time"));
};

struct NameArguments {
  protocol::TubeName name;
  static constexpr auto fields = schema(field<&NameArguments::name>("name"));
};

struct LoadArguments {
  protocol::BodySize size;
  static constexpr auto fields = schema(field<&LoadArguments::size>("bytes"));
};

struct EventsArguments {
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> limit;
  static constexpr auto fields =
      schema(field<&EventsArguments::from>("from"), field<&EventsArguments::limit>("limit"));
};

struct AwaitArguments {
  static constexpr bool kForFirstSlice = true;
  protocol::Word event;
  std::uint64_t count;
  std::uint32_t milliseconds;
  static constexpr auto fields =
      schema(field<&AwaitArguments::event>("event"), field<&AwaitArguments::count>("count"),
             field<&AwaitArguments::milliseconds>("ms"));
};

struct FaultArguments {
  protocol::Word verb;
  std::uint32_t count = 0;
  protocol::Word reply;
  static constexpr auto fields =
      schema(field<&FaultArguments::verb>("verb"), field<&FaultArguments::count>("count"),
             field<&FaultArguments::reply>("reply"));
};

// The clock
Answer advance(Context& context, Operation& operation, const AdvanceArguments& arguments);
Answer next(Context& context, Operation& operation, const NoArguments& arguments);
Answer clock(Context& context, const NoArguments& arguments);

// The state
Answer reset(Context& context, const NoArguments& arguments);
Answer snapshot(Context& context, const NameArguments& arguments);
Answer restore(Context& context, const NameArguments& arguments);
Answer dump(Context& context, const NoArguments& arguments);
commands::BodyPlan begin_load(Context& context, const LoadArguments& arguments);
Answer load(Context& context, const LoadArguments& arguments);

// Events and faults
Answer events(Context& context, const EventsArguments& arguments);
Answer await(Context& context, Operation& operation, const AwaitArguments& arguments);
Answer fault(Context& context, const FaultArguments& arguments);

}  // namespace tubed::test_mode
