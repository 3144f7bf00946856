// TestHooks: the part of test mode (test_mode/) that the service and its conversations call.
//
// Outside of test mode the pointer in Service is null.
#pragma once

#include <span>
#include <string_view>

#include "commands/command.h"
#include "commands/queue_clock.h"
#include "facts/output.h"

namespace tubed::commands {

class TestHooks : public QueueClock {
 public:
  // Returns the row that runs for a line beginning with this word, or null if the word is unknown.
  // `command`: its row in the command table, or null.
  virtual const Command* command_for(std::string_view word, const Command* command) = 0;

  // The rows of the commands that only a server in test mode has.
  virtual std::span<const Command> verbs() const = 0;

  // The engine has emitted these. Called in the middle of the engine's work.
  virtual void fact(const Fact& fact) = 0;
  virtual void notice(const engine::Notice& notice) = 0;
  virtual void retired(const engine::Retirement& retirement) = 0;
};

}  // namespace tubed::commands
