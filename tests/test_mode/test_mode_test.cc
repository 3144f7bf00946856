// The test verbs on a service without a socket: the test runs the conversations that are deferred,
// as a server does.
#include "test_mode/test_mode.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/test_mode/test_mode_server.h"

namespace tubed::test_mode {

using namespace std::chrono_literals;

TEST_CASE("outside of test mode its verbs are unknown") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "test-clock\r\n") == "UNKNOWN_COMMAND\r\n");
  CHECK(Talk::exchange(*client, "test-reset\r\n") == "UNKNOWN_COMMAND\r\n");
}

TEST_CASE("time stands still until it is advanced") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(server.say("test-clock") == "CLOCK 0 0\r\n");
  CHECK(server.send(client, put(3600)) == "INSERTED 1\r\n");
  CHECK(server.say("test-clock") == "CLOCK 0 3600000\r\n");
  server.tick(2h);
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "TIMED_OUT\r\n");
  CHECK(server.say("test-advance 3599") == "ADVANCED 3599000\r\n");
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "TIMED_OUT\r\n");
  CHECK(server.say("test-advance 1000ms") == "ADVANCED 3600000\r\n");
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "RESERVED 1 1\r\nx\r\n");
}

TEST_CASE("an advance goes through every deadline in order") {
  TestModeServer server;
  auto& client = server.client();
  auto& worker = server.client();
  server.send(client, put(20) + put(10));
  // The worker takes each job when it becomes ready, and deletes it at that time.
  CHECK(server.send(worker, "reserve\r\ndelete 2\r\nreserve\r\nstats-job 1\r\n").empty());
  CHECK(server.say("test-advance 60") == "ADVANCED 60000\r\n");
  const std::string replies = server.replies(worker);
  CHECK(replies.starts_with("RESERVED 2 1\r\nx\r\nDELETED\r\nRESERVED 1 1\r\nx\r\nOK "));
  CHECK(replies.find("\nage: 20\n") != std::string::npos);
  CHECK(replies.find("\ntime-left: 60\n") != std::string::npos);
}

TEST_CASE("a TTR, a pause and a timeout end when the clock passes them") {
  TestModeServer server;
  auto& client = server.client();
  auto& waiting = server.client();
  server.send(client, put(0, 5) + "reserve\r\n");
  CHECK(server.send(waiting, "reserve-with-timeout 3\r\n").empty());
  CHECK(server.say("test-next") == "ADVANCED 3000\r\n");
  CHECK(server.replies(waiting) == "TIMED_OUT\r\n");
  CHECK(server.say("test-next") == "ADVANCED 5000\r\n");
  CHECK(server.send(client, "release 1 0 0\r\n") == "NOT_FOUND\r\n");
  CHECK(server.send(client, "pause-tube default 100\r\n") == "PAUSED\r\n");
  CHECK(server.send(waiting, "reserve\r\n").empty());
  CHECK(server.say("test-advance 99") == "ADVANCED 104000\r\n");
  CHECK(server.replies(waiting).empty());
  CHECK(server.say("test-advance 1") == "ADVANCED 105000\r\n");
  CHECK(server.replies(waiting) == "RESERVED 1 1\r\nx\r\n");
  server.send(waiting, "delete 1\r\n");
  CHECK(server.say("test-next") == "NOT_FOUND\r\n");
}

TEST_CASE("a wait for a job runs again after a reset, without the job") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(server.send(client, put(0) + "wait 60 1\r\n") == "INSERTED 1\r\n");
  CHECK(server.say("test-reset") == "RESET\r\n");
  CHECK(server.replies(client) == "NOT_FOUND\r\n");
  CHECK(server.send(client, put(0)) == "INSERTED 1\r\n");
}

TEST_CASE("the clock is bounded, and malformed times are refused") {
  TestModeServer server;
  for (const char* bad : {"test-advance", "test-advance ", "test-advance -1", "test-advance 1s",
                          "test-advance 1 ms", "test-advance 4294967297", "test-advance x",
                          "test-clock 1", "test-next 1", "test-reset now"}) {
    CHECK(server.say(bad) == "BAD_FORMAT\r\n");
  }
  CHECK(server.say("test-advance 4294967296") == "ADVANCED 4294967296000\r\n");
  CHECK(server.say("test-advance 4294967296") == "BAD_FORMAT\r\n");
  CHECK(server.send(server.client(), put(-1 + 1, 60)) == "INSERTED 1\r\n");
  CHECK(server.send(server.client(), "put 0 4294967295 4294967295 1\r\nx\r\n") == "INSERTED 2\r\n");
}

TEST_CASE("an automatic clock jumps while every client waits") {
  TestModeServer server(ClockMode::automatic);
  auto& client = server.client();
  server.send(client, put(3600));
  CHECK(server.say("test-clock") == "CLOCK 0 3600000\r\n");
  CHECK(server.send(client, "reserve\r\n") == "RESERVED 1 1\r\nx\r\n");
  CHECK(server.say("test-clock").starts_with("CLOCK 3600000 "));
  CHECK(server.send(client, "delete 1\r\nreserve-with-timeout 30\r\n") ==
        "DELETED\r\nTIMED_OUT\r\n");
  CHECK(server.say("test-clock") == "CLOCK 3630000 0\r\n");
  // Also while it waits for the end of a job.
  CHECK(server.send(client, "put 0 0 60 1\r\nx\r\nwait 30 2\r\ndelete 2\r\n") ==
        "INSERTED 2\r\nTIMED_OUT\r\nDELETED\r\n");
  CHECK(server.say("test-clock") == "CLOCK 3660000 0\r\n");
  // Also without a control connection.
  TestModeServer without(ClockMode::automatic);
  without.control.reset();
  CHECK(without.send(without.client(), "reserve-with-timeout 30\r\n") == "TIMED_OUT\r\n");
  // A client that does not wait holds the clock.
  server.client();
  CHECK(server.send(client, "reserve-with-timeout 30\r\n").empty());
  server.clients.pop_back();
  server.tick();
  server.settle();
  CHECK(server.replies(client) == "TIMED_OUT\r\n");
}

TEST_CASE("a running clock follows the monotonic clock after an advance") {
  TestModeServer server(ClockMode::real);
  auto& client = server.client();
  server.send(client, put(100));
  CHECK(server.say("test-advance 60") == "ADVANCED 60000\r\n");
  CHECK(server.talk.service.next_deadlines().delay == kStart + 40s);
  server.tick(40s);
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "RESERVED 1 1\r\nx\r\n");
}

TEST_CASE("after a reset the server is as after its start") {
  // Without the memory that the input of connections has taken, and so without the size.
  const auto stats_of = [](TestModeServer& server) {
    std::string stats = server.say("stats");
    const std::size_t at = stats.find("input-memory: ");
    return stats.substr(stats.find('\n'), at - stats.find('\n')) +
           stats.substr(stats.find('\n', at));
  };
  TestModeServer fresh;
  TestModeServer used;
  for (TestModeServer* server : {&fresh, &fresh, &used, &used}) server->client();
  const std::string expected = stats_of(fresh);
  CHECK(stats_of(used) == expected);
  auto& client = *used.clients.front();
  used.send(client, "use mails\r\nwatch mails\r\n" + put(0) + put(50) + "reserve\r\nnonsense\r\n");
  used.send(*used.clients.back(), "pause-tube mails 10\r\nreserve-with-timeout 5\r\n");
  used.say("test-advance 7");
  used.talk.service.set_draining(true);
  CHECK(stats_of(used) != expected);
  CHECK(used.say("test-reset") == "RESET\r\n");
  CHECK(stats_of(used) == expected);
  CHECK(used.say("test-clock") == "CLOCK 0 0\r\n");
}

TEST_CASE("a reset ends drain mode, and a client that waits gets no job of the old queue") {
  TestModeServer server;
  auto& client = server.client();
  auto& waiting = server.client();
  server.send(client, put(0, 60, "old"));
  server.drain(true);
  CHECK(server.send(waiting, "reserve\r\n").empty());
  CHECK(server.say("test-reset") == "RESET\r\n");
  CHECK(server.replies(waiting).empty());
  CHECK(server.send(client, put(0, 60, "new")) == "INSERTED 1\r\n");
  CHECK(server.replies(waiting) == "RESERVED 1 3\r\nnew\r\n");
}

TEST_CASE("a reset keeps connections, and waits begin anew") {
  TestModeServer server;
  auto& client = server.client();
  server.client();
  auto& waiting = server.client();
  auto& body = server.client();
  // Its number stays free.
  server.clients.erase(server.clients.begin() + 1);
  server.send(client, "use mails\r\nwatch mails\r\n" + put(0) + "reserve\r\n");
  server.send(waiting, "watch other\r\nreserve-with-timeout 30\r\n");
  server.send(body, "put 0 0 60 4\r\nab");
  server.say("test-advance 20");
  CHECK(server.say("test-reset") == "RESET\r\n");
  CHECK(server.send(client, "list-tube-used\r\nlist-tubes-watched\r\nlist-tubes\r\n") ==
        "USING default\r\nOK 14\r\n---\n- default\n\r\nOK 14\r\n---\n- default\n\r\n");
  CHECK(server.send(client, "delete 1\r\nrelease 1 0 0\r\n") == "NOT_FOUND\r\nNOT_FOUND\r\n");
  CHECK(server.say("test-clock") == "CLOCK 0 30000\r\n");
  server.say("test-advance 20");
  CHECK(server.send(body, "cd\r\n") == "INSERTED 1\r\n");
  CHECK(server.replies(waiting) == "RESERVED 1 4\r\nabcd\r\n");
  CHECK(server.client().session() == 2);
}

TEST_CASE("a snapshot can be restored any number of times") {
  TestModeServer server;
  auto& client = server.client();
  server.send(client, "use mails\r\n" + put(0, 60, "one") + put(100, 60, "two") +
                          "pause-tube mails 500\r\n");
  server.say("test-advance 10");
  CHECK(server.say("test-snapshot base") == "SNAPSHOT 2\r\n");
  CHECK(server.say("test-restore other") == "NOT_FOUND\r\n");
  for (int i = 0; i < 2; ++i) {
    server.say("test-advance 1000");
    server.send(client, "delete 1\r\ndelete 2\r\n" + put(0));
    CHECK(server.say("test-restore base") == "RESTORED 2\r\n");
    CHECK(server.say("test-clock") == "CLOCK 10000 100000\r\n");
    CHECK(server.send(client, "peek 1\r\n") == "FOUND 1 3\r\none\r\n");
    const std::string paused = server.send(client, "stats-tube mails\r\n");
    CHECK(paused.find("pause-time-left: 490\n") != std::string::npos);
    CHECK(server.send(client, put(0)) == "INSERTED 3\r\n");
  }
  CHECK(server.say("test-reset") == "RESET\r\n");
  CHECK(server.say("test-restore base") == "RESTORED 2\r\n");
}

TEST_CASE("snapshots are bounded") {
  TestModeServer server;
  for (int i = 0; i < 100; ++i) {
    CHECK(server.say("test-snapshot s" + std::to_string(i)) == "SNAPSHOT 0\r\n");
  }
  CHECK(server.say("test-snapshot more") == "OUT_OF_MEMORY\r\n");
  CHECK(server.say("test-snapshot s7") == "SNAPSHOT 0\r\n");
  CHECK(server.say("test-snapshot -bad") == "BAD_FORMAT\r\n");
}

TEST_CASE("a dump has the tags of jobs, and a load brings them back") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(server.send(client, "put 0 0 60 1 idp:k:300 max:2:dead ttl:100\r\nx\r\n") ==
        "INSERTED 1\r\n");
  CHECK(server.send(client, "reserve\r\nrelease 1 0 0\r\n") == "RESERVED 1 1\r\nx\r\nRELEASED\r\n");
  CHECK(server.say("test-advance 40") == "ADVANCED 40000\r\n");
  const std::string reply = server.say("test-dump");
  const std::string dump = reply.substr(reply.find("\r\n") + 2);
  CHECK(dump.find(R"("tags":"idp:k:300 max:2:dead ttl:100")") != std::string::npos);
  for (int time = 0; time < 2; ++time) {
    CHECK(server.say("test-reset") == "RESET\r\n");
    const std::string load = "test-load " + std::to_string(dump.size() - 2) + "\r\n" + dump;
    CHECK(server.send(*server.control, load) == "LOADED 1\r\n");
    const std::string stats = server.send(client, "stats-job 1\r\n");
    for (const char* const line : {"\nage: 40\n", "\nreserves: 1\n", "\nmax-attempts: 2\n",
                                   "\ndead: dead\n", "\nttl: 100\n"}) {
      CAPTURE(line);
      CHECK(stats.find(line) != std::string::npos);
    }
    if (time == 0) {
      // The reservation before the dump was the first of two.
      CHECK(server.send(client, "reserve\r\nrelease 1 0 0\r\n") ==
            "RESERVED 1 1\r\nx\r\nRELEASED\r\n");
      CHECK(server.send(client, "stats-job 1\r\n").find("\ntube: dead\n") != std::string::npos);
    } else {
      // 40 s of the life had passed.
      CHECK(server.say("test-advance 59") == "ADVANCED 59000\r\n");
      CHECK(server.send(client, "peek 1\r\n") == "FOUND 1 1\r\nx\r\n");
      CHECK(server.say("test-advance 1") == "ADVANCED 60000\r\n");
      CHECK(server.send(client, "peek 1\r\n") == "NOT_FOUND\r\n");
    }
  }
}

TEST_CASE("events say what happened to each job") {
  TestModeServer server;
  auto& client = server.client();
  auto& other = server.client();
  server.send(client, "use mails\r\nwatch mails\r\n" + put(0, 5) + "reserve\r\ntouch 1\r\n");
  server.send(client, "release 1 0 0\r\nreserve-job 1\r\nbury 1 0\r\nkick 1\r\n");
  server.send(client, "reserve-with-timeout 0\r\n");
  server.say("test-advance 5");
  server.send(other, "reserve-with-timeout 1\r\n");
  server.say("test-advance 1");
  server.send(other, "watch mails\r\nreserve\r\n");
  server.clients.pop_back();
  server.send(client, "delete 1\r\npause-tube mails 9\r\nreserve-with-timeout 0\r\n");
  CHECK(server.say("test-events") ==
        "OK 241\r\n---\n- 1 put 1 mails\n- 2 reserve 1 c1\n- 3 touch 1 c1\n- 4 release 1\n"
        "- 5 reserve 1 c1\n- 6 bury 1\n- 7 kick 1\n- 8 reserve 1 c1\n- 9 timeout 1\n"
        "- 10 timed-out c2\n- 11 reserve 1 c2\n- 12 disconnect 1\n- 13 delete 1\n"
        "- 14 pause mails 9\n- 15 timed-out c1\n\r\n");
  CHECK(server.say("test-events 14") ==
        "OK 41\r\n---\n- 14 pause mails 9\n- 15 timed-out c1\n\r\n");
  CHECK(server.say("test-events 2 1") == "OK 21\r\n---\n- 2 reserve 1 c1\n\r\n");
  CHECK(server.say("test-events x") == "BAD_FORMAT\r\n");
  CHECK(server.say("test-events 1 2 3") == "BAD_FORMAT\r\n");
  server.say("test-reset");
  CHECK(server.say("test-events") == "OK 4\r\n---\n\r\n");
}

TEST_CASE("test-await waits in real time for a number of events") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(server.say("test-await put 2 5000").empty());
  CHECK(server.talk.service.next_deadlines().delay == kStart + 5s);
  server.send(client, put(0));
  CHECK(server.replies(*server.control).empty());
  server.send(client, put(0));
  CHECK(server.replies(*server.control) == "AWAITED 2\r\n");
  CHECK(server.say("test-await put 1 0") == "AWAITED 2\r\n");
  CHECK(server.say("test-await delete 1 0") == "TIMED_OUT\r\n");
  CHECK(server.say("test-await delete 1 100").empty());
  server.tick(100ms);
  server.settle();
  CHECK(server.replies(*server.control) == "TIMED_OUT\r\n");
  CHECK(server.say("test-await laugh 1 100") == "BAD_FORMAT\r\n");
  // Nothing is left of a client that goes while it waits.
  auto& leaving = server.client();
  CHECK(server.send(leaving, "test-await delete 1 100\r\n").empty());
  server.clients.pop_back();
  CHECK(server.send(client, "delete 1\r\n") == "DELETED\r\n");
}

TEST_CASE("a fault answers a command instead of doing it") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(server.say("test-fault put 1 OUT_OF_MEMORY") == "FAULT_SET\r\n");
  CHECK(server.say("test-fault delete 1 NOT_FOUND") == "FAULT_SET\r\n");
  CHECK(server.send(client, put(0)) == "OUT_OF_MEMORY\r\n");
  CHECK(server.send(client, put(0)) == "INSERTED 1\r\n");
  CHECK(server.send(client, "delete 1\r\ndelete 1\r\n") == "NOT_FOUND\r\nDELETED\r\n");
  CHECK(server.say("test-fault any 1 INTERNAL_ERROR") == "FAULT_SET\r\n");
  CHECK(server.say("list-tube-used") == "USING default\r\n");  // the control connection
  CHECK(server.send(client, "test-clock\r\nlist-tube-used\r\n") ==
        "CLOCK 0 0\r\nINTERNAL_ERROR\r\n");
  CHECK(server.say("test-fault put 1 CLOSE") == "FAULT_SET\r\n");
  CHECK(server.send(client, put(0)).empty());
  CHECK(client.finished());
  CHECK(server.talk.service.engine().info().memory_bytes == 0);
  for (const char* bad :
       {"test-fault put 1 INSERTED", "test-fault puts 1 CLOSE", "test-fault test-clock 1 CLOSE",
        "test-fault put 1", "test-fault put x CLOSE", "test-fault", "test-fault off 1"}) {
    CHECK(server.say(bad) == "BAD_FORMAT\r\n");
  }
  server.say("test-fault any 5 CLOSE");
  CHECK(server.say("test-fault off") == "FAULT_SET\r\n");
  CHECK(server.send(server.client(), "list-tube-used\r\n") == "USING default\r\n");
}

TEST_CASE("a command that hangs is answered after a reset, and not done") {
  TestModeServer server;
  auto& client = server.client();
  server.say("test-fault put 1 HANG");
  CHECK(server.send(client, put(0) + "list-tube-used\r\n").empty());
  CHECK(server.say("test-advance 60") == "ADVANCED 60000\r\n");
  CHECK(server.say("test-reset") == "RESET\r\n");
  CHECK(server.replies(client) == "INTERNAL_ERROR\r\nUSING default\r\n");
  CHECK(server.talk.service.engine().info().total_jobs == 0);
  server.say("test-fault reserve 1 HANG");
  CHECK(server.send(client, "reserve\r\n").empty());
  client.half_close();
  CHECK(client.finished());
}

TEST_CASE("two connections may advance the clock at the same time") {
  TestModeServer server;
  auto& client = server.client();
  server.send(client, put(10) + put(20));
  server.tick();
  server.control->receive("reserve\r\ntest-advance 5\r\n");
  client.receive("test-advance 20\r\n");
  server.settle();
  CHECK(server.replies(*server.control) == "RESERVED 1 1\r\nx\r\nADVANCED 15000\r\n");
  CHECK(server.replies(client) == "ADVANCED 20000\r\n");
}

}  // namespace tubed::test_mode
