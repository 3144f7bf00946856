// Values that a conversation keeps from one tick to the next: what other clients do to their jobs,
// tubes and sessions in between. batch_test.cc has the first job of a batch, authorization_test.cc
// the role, and tube_list_cache_test.cc the list of tubes.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/commands/admitted.h"

namespace tubed::commands {
namespace {

using std::chrono::seconds;

// Does one slice of a sliced command in a tick.
constexpr Limits kSlices{.work_per_turn = 10};

// A client that has run the first slice of `line` on tube t, and another client.
struct Sliced {
  Sliced(std::string_view before, std::string_view line) {
    for (int i = 0; i < 35; ++i) put(*other, "t", 9);
    Talk::exchange(*client, before);
    client->receive(line);
    CHECK(protocol::take_replies(client->replies()).empty());
  }

  static void put(Conversation& by, std::string_view tube, int delay) {
    Talk::exchange(
        by, "put-in-tube " + std::string(tube) + " 0 " + std::to_string(delay) + " 60 1\r\nb\r\n");
  }
  std::string ask(std::string_view line) { return Talk::exchange(*other, line); }
  // The replies of the other slices.
  std::string rest() {
    std::string all = Talk::replies_of(*client);
    talk.service.engine().check_invariants();
    return all;
  }
  std::uint64_t delayed(std::string_view tube) const {
    const auto info = talk.service.engine().queries().tube_info(talk.service.now(), tube);
    return info ? info->jobs.delayed : 0;
  }

  Talk talk{kSlices};
  std::unique_ptr<Conversation> other = talk.connect();
  std::unique_ptr<Conversation> client = talk.connect();
};

// The tube is removed, and another of its name has jobs.
void replace_tube(Sliced& sliced) {
  CHECK(sliced.ask("flush-tube t\r\n").starts_with("FLUSHED "));
  while (sliced.talk.service.may_remove_pending()) sliced.talk.advance(Duration(1));
  for (int i = 0; i < 12; ++i) Sliced::put(*sliced.other, "t", 9);
}

// Puts job `id`, the next of the used tube, into the state. Jobs with a smaller place come before
// it; a buried job is the last of the buried.
void put_in_state(Conversation& by, int id, int place, std::string_view state) {
  const std::string number = std::to_string(place);
  const bool delayed = state == "delayed";
  const std::string line =
      delayed ? "put 0 " + std::to_string(100 + place) : "put " + number + " 0";
  const std::string job = std::to_string(id);
  CHECK(Talk::exchange(by, line + " 600 1\r\nb\r\n") == "INSERTED " + job + "\r\n");
  if (state == "buried") {
    CHECK(Talk::exchange(by, "reserve-job " + job + "\r\nbury " + job + " 0\r\n") ==
          "RESERVED " + job + " 1\r\nb\r\nBURIED\r\n");
  }
}

// The jobs of the tube in the state, in the order of their ids.
std::vector<JobId> jobs_of(Talk& talk, std::string_view tube, std::string_view state) {
  constexpr std::array<std::string_view, 4> kStates = {"ready", "delayed", "buried", "reserved"};
  const auto place = std::find(kStates.begin(), kStates.end(), state) - kStates.begin();
  std::vector<JobId> all;
  for (JobId next = 1; next != 0;) {
    engine::JobPage page =
        talk.service.engine().queries().list_jobs(tube, static_cast<JobState>(place), next, 100);
    all.insert(all.end(), page.jobs.begin(), page.jobs.end());
    next = page.next;
  }
  return all;
}

}  // namespace

// --- Slices

TEST_CASE("the slices of a command end with its tube, and leave another tube of its name alone") {
  const auto after = [](std::string_view line) {
    Sliced sliced("", line);
    replace_tube(sliced);
    const std::string reply = sliced.rest();
    CHECK(sliced.delayed("t") == 12);
    return reply;
  };
  CHECK(after("kick-tube t 100 delayed\r\n") == "KICKED 10\r\n");
  CHECK(after("flush-tube t delayed\r\n") == "FLUSHED 10\r\n");
  CHECK(after("move-jobs t delayed to\r\n") == "MOVED 10\r\n");
}

TEST_CASE("the slices of a kick end with the used tube, although its client uses another since") {
  Sliced sliced("use t\r\n", "kick 100\r\n");
  // The client's own next command waits for the end of the kick.
  sliced.client->receive("use elsewhere\r\n");
  CHECK(sliced.ask("delete-force 30\r\n") == "DELETED\r\n");
  CHECK(sliced.rest() == "KICKED 34\r\nUSING elsewhere\r\n");
}

TEST_CASE("jobs that others take between two slices are not counted") {
  Sliced sliced("", "flush-tube t delayed\r\n");
  CHECK(sliced.ask("move-jobs t delayed u 20\r\n") == "MOVED 20\r\n");
  CHECK(sliced.rest() == "FLUSHED 15\r\n");
  CHECK(sliced.delayed("u") == 20);
}

TEST_CASE("a move ends where its target is full, and creates a target that was removed") {
  {
    Sliced sliced("", "move-jobs t delayed to\r\n");
    CHECK(sliced.ask("tube-policy to max-jobs 15\r\n") == "POLICY_SET\r\n");
    CHECK(sliced.rest() == "MOVED 15\r\n");
    CHECK(sliced.delayed("t") == 20);
  }
  {
    Sliced sliced("", "move-jobs t delayed to\r\n");
    CHECK(sliced.ask("flush-tube to\r\n") == "FLUSHED 10\r\n");
    while (sliced.talk.service.may_remove_pending()) sliced.talk.advance(Duration(1));
    CHECK(sliced.rest() == "MOVED 35\r\n");
    CHECK(sliced.delayed("to") == 25);
  }
}

TEST_CASE("move-jobs moves no job to its own tube, in any state, with and without a bound") {
  for (const std::string_view state : {"ready", "delayed", "buried"}) {
    CAPTURE(state);
    Talk talk(kSlices);
    auto client = talk.connect();
    Talk::exchange(*client, "use t\r\n");
    for (int job = 1; job <= 25; ++job) put_in_state(*client, job, 25 - job, state);
    const std::vector<JobId> before = jobs_of(talk, "t", state);
    CHECK(before.size() == 25);
    const std::string peek = state == "ready"     ? "peek-ready\r\n"
                             : state == "delayed" ? "peek-delayed\r\n"
                                                  : "peek-buried\r\n";
    const std::string first = Talk::exchange(*client, peek);
    const std::string move = "move-jobs t " + std::string(state) + " t";
    CHECK(Talk::exchange(*client, move + "\r\n") == "MOVED 0\r\n");
    CHECK(Talk::exchange(*client, move + " 7\r\n") == "MOVED 0\r\n");
    CHECK(jobs_of(talk, "t", state) == before);
    CHECK(Talk::exchange(*client, peek) == first);
    talk.service.engine().check_invariants();
  }
  // A tube that does not exist is not created.
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "move-jobs t ready t\r\nstats-tube t\r\n") ==
        "MOVED 0\r\nNOT_FOUND\r\n");
}

// The number of jobs is no multiple of the slice, and neither is the bound.
TEST_CASE("a bound takes the jobs that are given, come due or were buried first, in each slice") {
  constexpr int kJobs = 31;
  constexpr int kBound = 17;
  for (const std::string_view line :
       {"move-jobs t ready u", "move-jobs t delayed u", "move-jobs t buried u",
        "flush-tube t ready", "flush-tube t delayed", "flush-tube t buried",
        "flush-tube t reserved", "kick-tube t 17 delayed", "kick-tube t 17 buried"}) {
    CAPTURE(line);
    Talk talk(kSlices);
    auto client = talk.connect();
    Talk::exchange(*client, "use t\r\n");
    const bool kicks = line.starts_with("kick");
    std::string_view state = line;
    for (int word = 0; word < (kicks ? 3 : 2); ++word) state.remove_prefix(state.find(' ') + 1);
    state = state.substr(0, state.find(' '));
    std::vector<JobId> ids_by_place(kJobs);
    for (int job = 1; job <= kJobs; ++job) {
      const int place = job * 7 % kJobs;
      put_in_state(*client, job, place, state == "buried" ? "ready" : state);
      ids_by_place[static_cast<std::size_t>(place)] = static_cast<JobId>(job);
    }
    for (const JobId id : ids_by_place) {
      const std::string job = std::to_string(id);
      if (state == "buried" || state == "reserved") {
        Talk::exchange(*client, "reserve-job " + job + "\r\n");
      }
      if (state == "buried") Talk::exchange(*client, "bury " + job + " 0\r\n");
    }
    const std::string bound = kicks ? "" : " " + std::to_string(kBound);
    const std::string reply = Talk::exchange(*client, std::string(line) + bound + "\r\n");
    CHECK(reply.ends_with(" " + std::to_string(kBound) + "\r\n"));
    std::vector<JobId> left(ids_by_place.begin() + kBound, ids_by_place.end());
    std::sort(left.begin(), left.end());
    CHECK(jobs_of(talk, "t", state) == left);
  }
}

TEST_CASE("a bound takes a job whose concurrency key has no room after those that are given") {
  for (const std::string_view line : {"move-jobs t ready u 1\r\n", "flush-tube t ready 1\r\n"}) {
    CAPTURE(line);
    Talk talk(kSlices);
    auto client = talk.connect();
    Talk::exchange(*client,
                   "use t\r\nput 0 0 600 1 con:k\r\na\r\nreserve-job 1\r\n"
                   "put 0 0 600 1 con:k\r\nb\r\nput 9 0 600 1\r\nc\r\n");
    Talk::exchange(*client, line);
    CHECK(jobs_of(talk, "t", "ready") == std::vector<JobId>{2});
    Talk::exchange(*client, line);
    CHECK(jobs_of(talk, "t", "ready").empty());
  }
}

TEST_CASE("touch-all skips jobs that another client has reserved or that were removed") {
  Talk talk(kSlices);
  auto client = talk.connect();
  auto other = talk.connect();
  for (int i = 0; i < 18; ++i) Talk::exchange(*client, "put 0 0 5 0\r\n\r\n");
  CHECK(Talk::exchange(*client, "reserve-batch 18\r\n").starts_with("RESERVED_BATCH 18\r\n"));
  talk.advance(seconds(4));
  client->receive("touch-all\r\n");
  REQUIRE(client->can_resume());
  talk.advance(seconds(2));  // the TTR of the 8 jobs that the first slice has not touched
  std::vector<JobId> taken;
  for (JobId id = 1; id <= 18; ++id) {
    const std::string line = "reserve-job " + std::to_string(id) + "\r\n";
    if (Talk::exchange(*other, line).starts_with("RESERVED")) taken.push_back(id);
  }
  REQUIRE(taken.size() == 8);
  Talk::exchange(*other, "delete " + std::to_string(taken.back()) + "\r\n");
  talk.advance(seconds(2));
  CHECK(Talk::replies_of(*client) == "TOUCHED_ALL 10\r\n");
  // The TTR of the other client has not begun again.
  CHECK(talk.service.engine().queries().held_count(other->session()) == 7);
  const auto job = talk.service.engine().queries().job_info(talk.service.now(), taken.front());
  REQUIRE(job);
  CHECK(job->time_left == seconds(3));
  talk.service.engine().check_invariants();
}

// --- A body that arrives

TEST_CASE("a put is answered by the queue as it is when its body has arrived") {
  const auto reply_after = [](std::string_view put, std::string_view meanwhile) {
    Talk talk(Limits{.tubes = 3});
    auto client = talk.connect();
    auto other = talk.connect();
    Talk::exchange(*other, "put-in-tube t 5 0 60 0 idp:first\r\n\r\n");
    CHECK(
        Talk::exchange(*client, "use t\r\n" + std::string(put) + "\r\nbo").starts_with("USING t"));
    CHECK(Talk::exchange(*other, meanwhile).find("_FORMAT") == std::string::npos);
    const std::string reply = Talk::exchange(*client, "dy\r\n");
    talk.service.engine().check_invariants();
    return reply;
  };
  CHECK(reply_after("put 0 0 60 4", "flush-tube t\r\n") == "INSERTED 2\r\n");
  CHECK(reply_after("put 0 0 60 4", "tube-policy t max-jobs 1\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(reply_after("put 0 0 60 4", "drain\r\n") == "DRAINING\r\n");
  CHECK(reply_after("put 0 0 60 4 idp:k", "put-in-tube t 0 0 60 0 idp:k\r\n\r\n") ==
        "INSERTED 2 READY\r\n");
  CHECK(reply_after("put-in-tube u 0 0 60 4", "use v\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(reply_after("put-in-tube t 0 0 60 4", "flush-tube t\r\n") == "INSERTED 2\r\n");
}

// --- Waits and notices

TEST_CASE("a client that reuses the session of a notified client does not get its job") {
  Talk talk;
  auto worker = talk.connect();
  auto other = talk.connect();
  worker->receive("reserve\r\n");
  Talk::exchange(*other, "put 0 0 60 1\r\na\r\n");
  REQUIRE(talk.service.conversations().has_notified());
  const SessionId session = worker->session();
  worker.reset();
  auto next = talk.connect();
  REQUIRE(next->session() == session);
  std::vector<SessionId> notified;
  talk.service.conversations().take_notified(notified);
  CHECK(notified == std::vector<SessionId>{session});
  CHECK(Talk::replies_of(*next).empty());
  CHECK_FALSE(talk.service.engine().holds_jobs(session));
  CHECK(Talk::exchange(*next, "reserve\r\n") == "RESERVED 1 1\r\na\r\n");
}

TEST_CASE("the wait of a client that closes ends, whatever it waits for") {
  for (const std::string_view wait : {"reserve\r\n", "reserve-batch 5 60\r\n", "wait 60 1\r\n",
                                      "reserve-with-timeout 60\r\n", "reserve-with-abort\r\n"}) {
    CAPTURE(wait);
    Talk talk;
    auto other = talk.connect();
    Talk::exchange(*other, "put-in-tube t 0 0 60 1\r\na\r\n");
    auto client = talk.connect();
    client->receive(wait);
    REQUIRE(client->waiting());
    client.reset();
    CHECK(Talk::exchange(*other, "put 0 0 60 1\r\na\r\ndelete 1\r\nreserve\r\n") ==
          "INSERTED 2\r\nDELETED\r\nRESERVED 2 1\r\na\r\n");
    CHECK_FALSE(talk.service.conversations().has_notified());
    talk.service.engine().check_invariants();
  }
}

TEST_CASE("a wait ends with its job, whichever way the job ends") {
  for (const std::string_view end :
       {"delete 1\r\n", "delete-force 1\r\n", "flush-tube t\r\n", "truncate t\r\n",
        "flush-tube t ready\r\n", "move-job 1 u\r\ndelete 1\r\n"}) {
    CAPTURE(end);
    Talk talk;
    auto other = talk.connect();
    Talk::exchange(*other, "put-in-tube t 0 0 60 1\r\na\r\n");
    auto client = talk.connect();
    client->receive("wait 60 1\r\n");
    Talk::exchange(*other, end);
    CHECK(Talk::replies_of(*client) == "DELETED 1\r\n");
  }
}

TEST_CASE("replies that are not sent yet keep the bodies of jobs that are gone") {
  Talk talk;
  auto client = talk.connect();
  auto other = talk.connect();
  const std::string body(50'000, 'b');
  Talk::exchange(*other, "put-in-tube t 0 0 60 50000\r\n" + body + "\r\n");
  client->receive("peek 1\r\n");
  while (client->can_resume()) client->resume();
  Talk::exchange(*other, "flush-tube t\r\n");
  while (talk.service.may_remove_pending()) talk.advance(Duration(1));
  CHECK(talk.service.engine().memory().bytes() == 0);
  CHECK(Talk::replies_of(*client) == "FOUND 1 50000\r\n" + body + "\r\n");
}

// --- Commands that wait for the log

namespace {

class SwitchedLog final : public NullLog {
 public:
  void fact(const Fact&) override {}
  bool congested() const override { return is_congested; }
  bool is_congested = false;
};

}  // namespace

TEST_CASE("a command that waits for the log is decided about when it runs") {
  for (const std::string_view line :
       {"put-in-tube a 0 0 60 1\r\nb\r\n", "delete 1\r\n", "kick-job 1\r\n", "flush-tube a\r\n"}) {
    CAPTURE(line);
    SwitchedLog log;
    Admitted talk({role_of_families("r", "pwia", {"a"})});
    talk.service.set_log(log);
    auto client = talk.connect_as("r");
    auto other = talk.connect();
    Talk::exchange(*other, "put-in-tube a 0 9 60 1\r\nx\r\n");
    log.is_congested = true;
    client->receive(line);
    CHECK(client->waits_for_log());
    talk.service.set_roles({role_of_families("r", "pwia", {"b"})});
    log.is_congested = false;
    const bool of_job = line.find(" 1\r\n") == line.size() - 4;
    CHECK(Talk::replies_of(*client) == (of_job ? "NOT_FOUND\r\n" : "DENIED\r\n"));
    CHECK(talk.service.engine().info().total_jobs == 1);
    talk.service.engine().check_invariants();
  }
}

TEST_CASE("a command that waits for the log finds the job or the tube gone") {
  for (const auto& pair : std::vector<std::pair<std::string, std::string>>{
           {"delete 1\r\n", "NOT_FOUND\r\n"},
           {"move-job 1 t\r\n", "NOT_FOUND\r\n"},
           {"kick-tube a 5\r\n", "KICKED 0\r\n"},
           {"pause-tube a 5\r\n", "NOT_FOUND\r\n"},
           {"put-in-tube a 0 0 60 1\r\nb\r\n", "INSERTED 2\r\n"}}) {
    const std::string& line = pair.first;
    const std::string& reply = pair.second;
    CAPTURE(line);
    SwitchedLog log;
    Talk talk;
    talk.service.set_log(log);
    auto client = talk.connect();
    Talk::exchange(*client, "put-in-tube a 0 9 60 1\r\nx\r\n");
    log.is_congested = true;
    client->receive(line);
    CHECK(client->waits_for_log());
    talk.service.engine().flush(talk.service.now(), "a", talk.service);
    log.is_congested = false;
    while (talk.service.may_remove_pending()) talk.advance(Duration(1));
    CHECK(Talk::replies_of(*client) == reply);
    talk.service.engine().check_invariants();
  }
}

// --- What the role may use

TEST_CASE("the rights on the used and watched tubes follow the current role") {
  const auto role = [](const char* tube) { return role_of_families("r", "pwi", {tube}); };
  Admitted talk({role("a")});
  auto client = talk.connect_as("r");
  Talk::exchange(*client, "use a\r\nwatch a\r\nignore default\r\n");
  const std::string_view both = "put 0 0 60 0\r\n\r\nreserve-with-timeout 0\r\n";
  CHECK(Talk::exchange(*client, both) == "INSERTED 1\r\nRESERVED 1 0\r\n\r\n");
  talk.service.set_roles({role("b")});
  CHECK(Talk::exchange(*client, both) == "DENIED\r\nDENIED\r\n");
  CHECK(Talk::exchange(*client, "delete 1\r\n") == "NOT_FOUND\r\n");
  talk.service.set_roles({role("a")});
  CHECK(Talk::exchange(*client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(Talk::exchange(*client, both) == "INSERTED 2\r\nRESERVED 2 0\r\n\r\n");
  // Until its connection is closed, a client whose role was removed may do nothing.
  talk.service.set_roles({});
  CHECK(Talk::exchange(*client, both) == "DENIED\r\nDENIED\r\n");
  CHECK(Talk::exchange(*client, "delete 2\r\n") == "DENIED\r\n");
  CHECK(client->principal()->role()->removed());
}

// --- Pages of lists

TEST_CASE("a page of list-jobs begins where the last page ended, even if that job was removed") {
  Talk talk;
  auto client = talk.connect();
  auto other = talk.connect();
  for (int i = 0; i < 6; ++i) Talk::exchange(*other, "put-in-tube t 0 0 60 0\r\n\r\n");
  const std::string first = Talk::exchange(*client, "list-jobs t ready 0 2\r\n");
  CHECK(first.find("next 3") != std::string::npos);
  Talk::exchange(*other, "delete 3\r\nmove-job 4 u\r\n");
  const std::string second = Talk::exchange(*client, "list-jobs t ready 3 2\r\n");
  CHECK(second.find("5 ready ") != std::string::npos);
  CHECK(second.find("6 ready ") != std::string::npos);
  CHECK(second.find("4 ready ") == std::string::npos);
  Talk::exchange(*other, "flush-tube t\r\n");
  CHECK(Talk::exchange(*client, "list-jobs t ready 5 2\r\n").find("next 0") != std::string::npos);
}

TEST_CASE("a filtered page ends after limits.work_per_turn jobs, whatever other clients do") {
  Talk talk({.work_per_turn = 3});
  auto client = talk.connect();
  auto other = talk.connect();
  for (int i = 1; i <= 8; ++i) {
    const std::string body = i % 4 == 0 ? "error" : "other";
    Talk::exchange(*other, "put-in-tube t 0 0 60 5\r\n" + body + "\r\n");
  }
  const auto page = [&](const std::string& from) {
    return Talk::exchange(*client, "list-jobs t all " + from + " 100 body:error\r\n");
  };
  const std::string none = page("0");
  CHECK(none.find("- next 4 looked 3\n") != std::string::npos);
  CHECK(none.find(" ready ") == std::string::npos);
  // Job 4 leaves the tube between two pages, job 5 is deleted, and both clients ask in one tick.
  other->receive("move-job 4 u\r\ndelete 5\r\nlist-jobs u all 0 100 body:error\r\n");
  client->receive("list-jobs t all 4 100 body:error\r\n");
  const std::string moved = Talk::replies_of(*other);
  CHECK(moved.find("- next 0 looked 1\n") != std::string::npos);
  CHECK(moved.find("\n- 4 ready ") != std::string::npos);
  const std::string last = Talk::replies_of(*client);
  CHECK(last.find("- next 0 looked 3\n") != std::string::npos);
  CHECK(last.find("\n- 8 ready ") != std::string::npos);
  CHECK(last.find("\n- 4 ") == std::string::npos);
  Talk::exchange(*other, "flush-tube t\r\n");
  CHECK(page("4").find("- next 0 looked 0\n") != std::string::npos);
}

TEST_CASE("a page of stats-tubes or list-clients after the last of them is empty") {
  Talk talk;
  auto client = talk.connect();
  auto other = talk.connect();
  Talk::exchange(*other, "use a\r\nuse b\r\n");
  auto third = talk.connect();
  for (const char* const tube : {"x", "y", "z"}) {
    Talk::exchange(*other, "put-in-tube " + std::string(tube) + " 0 0 60 0\r\n\r\n");
  }
  CHECK(Talk::exchange(*client, "stats-tubes 0 4\r\n").find("next 4") != std::string::npos);
  for (const char* const tube : {"x", "y", "z"}) {
    Talk::exchange(*other, "flush-tube " + std::string(tube) + "\r\n");
  }
  while (talk.service.may_remove_pending()) talk.advance(Duration(1));
  CHECK(Talk::exchange(*client, "stats-tubes 4 4\r\n").find("next 0") != std::string::npos);
  CHECK(Talk::exchange(*client, "list-clients 0 2\r\n").find("next 2") != std::string::npos);
  third.reset();
  CHECK(Talk::exchange(*client, "list-clients 2 2\r\n").find("next 0") != std::string::npos);
}

}  // namespace tubed::commands
