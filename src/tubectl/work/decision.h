// Decision: what happens to a job once its command has ended. Pure: it uses no server, no process
// and no clock.
//
// The rules, in this order: success deletes; a code of --bury-codes buries; an action other than
// release is taken as it is; a job that was released `retries` times is buried; otherwise it is
// released, with a delay that doubles from `first_delay_seconds` up to `longest_delay_seconds`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tubed::tubectl::work {

// How a command ended.
struct Ending {
  int exit_code = 0;     // if no signal killed it
  int signal = 0;        // that killed it; 0: none
  bool overran = false;  // ended because it exceeded its time, whatever its exit code

  bool succeeded() const { return exit_code == 0 && signal == 0 && !overran; }
};

enum class FailureAction : std::uint8_t { delete_job, release, bury };

// The user's policy for jobs whose command failed.
struct Policy {
  FailureAction on_failure = FailureAction::release;
  std::uint64_t retries = 10;  // with FailureAction::release: buries after this number of releases
  std::uint64_t first_delay_seconds = 1;
  std::uint64_t longest_delay_seconds = 3600;
  std::vector<int> bury_codes;  // exit codes that always bury
};

struct Decision {
  FailureAction action = FailureAction::delete_job;
  std::uint64_t delay_seconds = 0;  // of FailureAction::release
};

// `releases`: how often the job was released before.
Decision decide(const Policy& policy, const Ending& ending, std::uint64_t releases);

// "exit code 3", "killed by SIGKILL", "ran too long".
std::string describe(const Ending& ending);

}  // namespace tubed::tubectl::work
