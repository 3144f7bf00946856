// `tubectl work`: the decision about a job after its command has ended.
#include "tubectl/work/decision.h"

#include <csignal>

#include <doctest/doctest.h>

namespace tubed::tubectl::work {
namespace {

const Ending kSuccess{0, 0, false};
const Ending kFailure{1, 0, false};

void check_release(const Decision& decision, std::uint64_t delay_seconds) {
  CHECK(decision.action == FailureAction::release);
  CHECK(decision.delay_seconds == delay_seconds);
}

TEST_CASE("a successful command deletes its job") {
  for (const FailureAction action :
       {FailureAction::release, FailureAction::bury, FailureAction::delete_job}) {
    Policy policy;
    policy.on_failure = action;
    policy.bury_codes = {0, 1};
    policy.retries = 0;
    CHECK(decide(policy, kSuccess, 1000).action == FailureAction::delete_job);
  }
}

TEST_CASE("each failure doubles the delay") {
  const Policy policy;
  std::uint64_t delay = 1;
  for (std::uint64_t releases = 0; releases < policy.retries; ++releases) {
    check_release(decide(policy, kFailure, releases), delay);
    delay *= 2;
  }
  CHECK(decide(policy, kFailure, policy.retries).action == FailureAction::bury);
}

TEST_CASE("the delay is limited and does not overflow") {
  Policy policy;
  policy.retries = UINT64_MAX;
  policy.first_delay_seconds = 3;
  policy.longest_delay_seconds = 100;
  check_release(decide(policy, kFailure, 5), 96);
  check_release(decide(policy, kFailure, 6), 100);
  check_release(decide(policy, kFailure, 1'000'000), 100);
  policy.longest_delay_seconds = UINT32_MAX;
  check_release(decide(policy, kFailure, 200), UINT32_MAX);
  policy.first_delay_seconds = 200;
  policy.longest_delay_seconds = 100;
  check_release(decide(policy, kFailure, 0), 100);
}

TEST_CASE("a delay of 0 stays 0") {
  Policy policy;
  policy.retries = UINT64_MAX;
  policy.first_delay_seconds = 0;
  check_release(decide(policy, kFailure, 0), 0);
  check_release(decide(policy, kFailure, UINT64_MAX - 1), 0);
}

TEST_CASE("without retries the first failure buries") {
  Policy policy;
  policy.retries = 0;
  CHECK(decide(policy, kFailure, 0).action == FailureAction::bury);
}

TEST_CASE("the action chosen by the user applies to failures") {
  Policy policy;
  policy.on_failure = FailureAction::bury;
  CHECK(decide(policy, kFailure, 0).action == FailureAction::bury);
  policy.on_failure = FailureAction::delete_job;
  CHECK(decide(policy, kFailure, 0).action == FailureAction::delete_job);
  CHECK(decide(policy, kFailure, 1000).action == FailureAction::delete_job);
}

TEST_CASE("some exit codes bury immediately") {
  Policy policy;
  policy.on_failure = FailureAction::delete_job;
  policy.bury_codes = {65, 66, SIGTERM};
  CHECK(decide(policy, {65, 0, false}, 0).action == FailureAction::bury);
  CHECK(decide(policy, {66, 0, false}, 0).action == FailureAction::bury);
  CHECK(decide(policy, {67, 0, false}, 0).action == FailureAction::delete_job);
  // A signal number does not count, nor does the code of a command that was terminated.
  CHECK(decide(policy, {0, SIGTERM, false}, 0).action == FailureAction::delete_job);
  CHECK(decide(policy, {65, 0, true}, 0).action == FailureAction::delete_job);
}

TEST_CASE("a signal or an exceeded time is a failure, whatever the exit code") {
  const Policy policy;
  check_release(decide(policy, {0, SIGKILL, false}, 0), 1);
  check_release(decide(policy, {0, 0, true}, 2), 4);
}

TEST_CASE("the end of a command, in words") {
  CHECK(describe({3, 0, false}) == "exit code 3");
  CHECK(describe({0, SIGKILL, false}) == "killed by SIGKILL");
  CHECK(describe({0, SIGRTMIN + 1, false}).starts_with("killed by signal "));
  CHECK(describe({0, SIGTERM, true}) == "ran too long");
}

}  // namespace
}  // namespace tubed::tubectl::work
