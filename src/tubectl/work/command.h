// Command: the process that runs for a job.
//
// It leads its own process group, so that Ctrl-C at the terminal does not reach it, and has the
// body on its standard input. The kernel sends it SIGTERM if tubectl dies. Processes that it leaves
// running are not touched.
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

// The operator's mistake, or the machine's trouble; never the job's.
struct CannotRun {
  int exit_code;  // as a shell has it: 127 not found, 126 cannot be executed
  std::string reason;
};

// The parameters of a command that do not depend on the job.
struct CommandLine {
  std::vector<std::string> words;  // the program and its arguments
  sigset_t signal_mask;            // of the process, before tubectl blocked signals
  rlim_t descriptor_limit;         // and before tubectl raised it
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// Owns the process until end() has collected it; destroying a Command before that leaves a zombie
// until tubectl exits. Movable, so that a worker can keep it in an optional.
class Command {
 public:
  // Waits until the program has taken over from tubectl, or could not. `variables` are added to
  // the environment.
  static std::variant<Command, CannotRun> start(const CommandLine& command_line,
                                                std::string_view body, const Variables& variables);

  // For poll(): readable when it has ended.
  int descriptor() const { return process_.number(); }
  // To its whole process group. Precondition: end() was not called.
  void signal(int number) const { ::kill(-id_, number); }
  // How it ended. Precondition: it has; to be called once.
  Ending end();

 private:
  Command(pid_t id, os::Descriptor process) : id_(id), process_(std::move(process)) {}

  pid_t id_;
  os::Descriptor process_;  // pidfd
};

// Why start() would not find that program; nothing if it would.
std::optional<CannotRun> look_for(const std::string& program);

}  // namespace tubed::tubectl::work
