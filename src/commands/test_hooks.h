// TestHooks: the part of test mode (test_mode/) that the service and its conversations call.
//
// A server outside of test mode has none: the pointer in Service is null.
#pragma once

#include <span>
#include <string_view>

#include "commands/command.h"
#include "engine/deadline_index.h"
#include "engine/output.h"

namespace tubed::commands {

class TestHooks {
 public:
  virtual ~TestHooks() = default;

  // The row that runs for a line that begins with this word. `command`: its row in the command
  // table, or null. Null: there is no such command in test mode either.
  virtual const Command* command_for(std::string_view word, const Command* command) = 0;

  // The rows of the commands that only a server in test mode has.
  virtual std::span<const Command> verbs() const = 0;

  // A tick has begun at `tick`, by the monotonic clock. Returns the time of the queue.
  virtual Time tick_began(Time tick) = 0;
  // When the next tick is needed, by the monotonic clock.
  virtual engine::Deadlines next_deadlines() const = 0;

  // The engine has emitted this. Called in the middle of the engine's work.
  virtual void fact(const Fact& fact) = 0;
  virtual void notice(const engine::Notice& notice) = 0;
  virtual void retired(const engine::Retirement& retirement) = 0;
};

}  // namespace tubed::commands
