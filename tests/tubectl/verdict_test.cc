// What becomes of a job once its command has ended: `tubectl work`.
#include "tubectl/work/verdict.h"

#include <csignal>

#include <doctest/doctest.h>

namespace tubed::tubectl::work {
namespace {

const Ending kSuccess{0, 0, false};
const Ending kFailure{1, 0, false};

void check_release(const Verdict& verdict, std::uint64_t delay_seconds) {
  CHECK(verdict.fate == Fate::release);
  CHECK(verdict.delay_seconds == delay_seconds);
}

TEST_CASE("a command that succeeds deletes its job") {
  for (const Fate fate : {Fate::release, Fate::bury, Fate::delete_job}) {
    Policy policy;
    policy.on_failure = fate;
    policy.bury_codes = {0, 1};
    policy.retries = 0;
    CHECK(judge(policy, kSuccess, 1000).fate == Fate::delete_job);
  }
}

TEST_CASE("each failure doubles the delay") {
  const Policy policy;
  std::uint64_t delay = 1;
  for (std::uint64_t releases = 0; releases < policy.retries; ++releases) {
    check_release(judge(policy, kFailure, releases), delay);
    delay *= 2;
  }
  CHECK(judge(policy, kFailure, policy.retries).fate == Fate::bury);
}

TEST_CASE("the delay has a limit, and does not overflow") {
  Policy policy;
  policy.retries = UINT64_MAX;
  policy.first_delay_seconds = 3;
  policy.longest_delay_seconds = 100;
  check_release(judge(policy, kFailure, 5), 96);
  check_release(judge(policy, kFailure, 6), 100);
  check_release(judge(policy, kFailure, 1'000'000), 100);
  policy.longest_delay_seconds = UINT32_MAX;
  check_release(judge(policy, kFailure, 200), UINT32_MAX);
  policy.first_delay_seconds = 200;
  policy.longest_delay_seconds = 100;
  check_release(judge(policy, kFailure, 0), 100);
}

TEST_CASE("no delay stays none") {
  Policy policy;
  policy.retries = UINT64_MAX;
  policy.first_delay_seconds = 0;
  check_release(judge(policy, kFailure, 0), 0);
  check_release(judge(policy, kFailure, UINT64_MAX - 1), 0);
}

TEST_CASE("without retries the first failure buries") {
  Policy policy;
  policy.retries = 0;
  CHECK(judge(policy, kFailure, 0).fate == Fate::bury);
}

TEST_CASE("what the user chose for failures") {
  Policy policy;
  policy.on_failure = Fate::bury;
  CHECK(judge(policy, kFailure, 0).fate == Fate::bury);
  policy.on_failure = Fate::delete_job;
  CHECK(judge(policy, kFailure, 0).fate == Fate::delete_job);
  CHECK(judge(policy, kFailure, 1000).fate == Fate::delete_job);
}

TEST_CASE("some exit codes bury at once") {
  Policy policy;
  policy.on_failure = Fate::delete_job;
  policy.bury_codes = {65, 66, SIGTERM};
  CHECK(judge(policy, {65, 0, false}, 0).fate == Fate::bury);
  CHECK(judge(policy, {66, 0, false}, 0).fate == Fate::bury);
  CHECK(judge(policy, {67, 0, false}, 0).fate == Fate::delete_job);
  // Neither a signal nor what a command says that was told to end is such a code.
  CHECK(judge(policy, {0, SIGTERM, false}, 0).fate == Fate::delete_job);
  CHECK(judge(policy, {65, 0, true}, 0).fate == Fate::delete_job);
}

TEST_CASE("a signal, and running too long, are failures whatever the exit code says") {
  const Policy policy;
  check_release(judge(policy, {0, SIGKILL, false}, 0), 1);
  check_release(judge(policy, {0, 0, true}, 2), 4);
}

TEST_CASE("how it ended, in words") {
  CHECK(describe({3, 0, false}) == "exit code 3");
  CHECK(describe({0, SIGKILL, false}) == "killed by SIGKILL");
  CHECK(describe({0, SIGRTMIN + 1, false}).starts_with("killed by signal "));
  CHECK(describe({0, SIGTERM, true}) == "ran too long");
}

}  // namespace
}  // namespace tubed::tubectl::work
