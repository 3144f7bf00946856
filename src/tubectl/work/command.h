// Command: the process that runs for a job.
//
// It leads its own process group, which Ctrl-C at the terminal does not reach, and has the body on
// its standard input. The kernel sends it SIGTERM if tubectl dies. Processes that it leaves running
// are not touched.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "os/descriptor.h"
#include "tubectl/work/decision.h"

namespace tubed::tubectl::work {

// A failure of the configuration or the machine, never of the job.
struct CannotRun {
  int exit_code;  // as in a shell: 127 not found, 126 cannot be executed
  std::string reason;
};

// The parameters of a command that do not depend on the job.
struct CommandLine {
  std::vector<std::string> words;  // the program and its arguments
  sigset_t signal_mask;            // of the process, before tubectl blocked signals
  rlim_t descriptor_limit;         // of the process, before tubectl raised it
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// Owns the process until end() has collected it; a Command destroyed earlier leaves a zombie until
// tubectl exits. Movable, to be kept in an optional.
class Command {
 public:
  // Waits until the child runs the program, or has failed to. Adds `variables` to the environment.
  static std::variant<Command, CannotRun> start(const CommandLine& command_line,
                                                std::string_view body, const Variables& variables);

  // For the event loop: readable when the process has ended.
  int descriptor() const { return process_.number(); }
  // Signals the whole process group. Precondition: end() was not called.
  void signal(int number) const { ::kill(-id_, number); }
  // Collects the process and returns how it ended. Precondition: it has ended. Called once.
  Ending end();

 private:
  Command(pid_t id, os::Descriptor process) : id_(id), process_(std::move(process)) {}

  pid_t id_;
  os::Descriptor process_;  // pidfd
};

// The reason why start() would not find the program; no value if it would.
std::optional<CannotRun> look_for(const std::string& program);

}  // namespace tubed::tubectl::work
