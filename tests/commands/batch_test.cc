// A reserve-batch that has waited is given its first job by a notice, and replies only when the
// scheduler resumes it. These tests run other commands in between.
#include <doctest/doctest.h>

#include "tests/commands/talk.h"

namespace tubed::commands {
namespace {

using std::chrono::milliseconds;

// A worker that waits in a reserve-batch on tube t, and another client.
struct WaitingBatch {
  explicit WaitingBatch(std::string_view form = "") {
    const std::string before = "watch t\r\nignore default\r\n";
    CHECK(Talk::exchange(*worker, before) == "WATCHING 2\r\nWATCHING 1\r\n");
    if (!form.empty()) CHECK(Talk::exchange(*worker, form) == "OK\r\n");
    worker->receive("reserve-batch 10 5\r\n");
    CHECK(worker->waiting());
  }

  Talk talk;
  std::unique_ptr<Conversation> worker = talk.connect();
  std::unique_ptr<Conversation> other = talk.connect();
};

constexpr std::string_view kPut = "put-in-tube t 0 0 60 1\r\na\r\n";

TEST_CASE("a job that is removed before the batch replies is not in the batch") {
  for (const std::string_view form : {"", "set-caps 1\r\n"}) {
    for (const std::string_view removal : {"flush-tube t\r\n", "delete-force 1\r\n"}) {
      CAPTURE(form);
      CAPTURE(removal);
      WaitingBatch batch(form);
      Talk::exchange(*batch.other, std::string(kPut) + std::string(removal));
      CHECK(Talk::replies_of(*batch.worker) == "RESERVED_BATCH 0\r\n");
      CHECK_FALSE(batch.talk.service.engine().holds_jobs(batch.worker->session()));
      batch.talk.service.engine().check_invariants();
      // The worker is served as before.
      Talk::exchange(*batch.other, kPut);
      const std::string_view tube = form.empty() ? "" : " t";
      CHECK(Talk::exchange(*batch.worker, "reserve-batch 10 5\r\n") ==
            "RESERVED_BATCH 1\r\nRESERVED 2 1" + std::string(tube) + "\r\na\r\n");
    }
  }
}

TEST_CASE("a truncated tube leaves the batch the job that it holds") {
  WaitingBatch batch("set-caps 1\r\n");
  Talk::exchange(*batch.other, std::string(kPut) + "truncate t\r\n");
  CHECK(Talk::replies_of(*batch.worker) == "RESERVED_BATCH 1\r\nRESERVED 1 1 t\r\na\r\n");
  CHECK(Talk::exchange(*batch.worker, "delete 1\r\n") == "DELETED\r\n");
}

TEST_CASE("a batch takes the jobs that are ready in place of a removed job") {
  WaitingBatch batch("set-caps 1\r\n");
  Talk::exchange(*batch.other,
                 std::string(kPut) + "delete-force 1\r\n" + std::string(kPut) + std::string(kPut));
  CHECK(Talk::replies_of(*batch.worker) ==
        "RESERVED_BATCH 2\r\nRESERVED 2 1 t\r\na\r\nRESERVED 3 1 t\r\na\r\n");
}

TEST_CASE("a job whose TTR ends before the batch replies is not in the batch") {
  WaitingBatch batch("set-caps 1\r\n");
  Talk::exchange(*batch.other, "watch t\r\nput-in-tube t 0 0 1ms 1\r\na\r\n");
  batch.talk.advance(milliseconds(2));
  CHECK(Talk::exchange(*batch.other, "reserve-job 1\r\n") == "RESERVED 1 1\r\na\r\n");
  CHECK(Talk::replies_of(*batch.worker) == "RESERVED_BATCH 0\r\n");
}

TEST_CASE("a job that its policy removes before the batch replies is not in the batch") {
  WaitingBatch batch("set-caps 1\r\n");
  Talk::exchange(*batch.other, "put-in-tube t 0 0 1ms 1 max:1:delete\r\na\r\n");
  batch.talk.advance(milliseconds(2));
  CHECK(Talk::replies_of(*batch.worker) == "RESERVED_BATCH 0\r\n");
  batch.talk.service.engine().check_invariants();
}

TEST_CASE("a batch takes its job again if the TTR has ended and the job is ready") {
  WaitingBatch batch("set-caps 1\r\n");
  Talk::exchange(*batch.other, "put-in-tube t 0 0 1ms 1\r\na\r\n");
  batch.talk.advance(milliseconds(2));
  CHECK(Talk::replies_of(*batch.worker) == "RESERVED_BATCH 1\r\nRESERVED 1 1 t\r\na\r\n");
  CHECK(batch.talk.service.engine().queries().holder_of(1) == batch.worker->session());
}

TEST_CASE("a batch is answered DEADLINE_SOON only if it may wait") {
  Talk talk;
  auto worker = talk.connect();
  CHECK(Talk::exchange(*worker, "put 0 0 1 1\r\na\r\nreserve-batch 1\r\n") ==
        "INSERTED 1\r\nRESERVED_BATCH 1\r\nRESERVED 1 1\r\na\r\n");
  CHECK(Talk::exchange(*worker, "reserve-batch 5\r\n") == "RESERVED_BATCH 0\r\n");
  CHECK(Talk::exchange(*worker, "reserve-batch 5 0\r\n") == "RESERVED_BATCH 0\r\n");
  CHECK(Talk::exchange(*worker, "reserve-batch 5 0ms\r\n") == "RESERVED_BATCH 0\r\n");
  CHECK(Talk::exchange(*worker, "reserve-batch 5 1\r\n") == "DEADLINE_SOON\r\n");
}

TEST_CASE("a batch of milliseconds is answered DEADLINE_SOON too") {
  Talk talk;
  auto worker = talk.connect();
  Talk::exchange(*worker, "put 0 0 1 1\r\na\r\nreserve-batch 1\r\n");
  CHECK(Talk::exchange(*worker, "reserve-batch 5 500ms\r\n") == "DEADLINE_SOON\r\n");
}

}  // namespace
}  // namespace tubed::commands
