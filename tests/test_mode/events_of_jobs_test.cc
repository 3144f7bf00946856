// The events of a job whose life tags and policies decide about: each event follows from what
// happened to the job, whichever command ran at that moment.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/test_mode/test_mode_server.h"

namespace tubed::test_mode {

namespace {

using Events = std::vector<std::string>;

// The events since the last call for this server, without their numbers.
class NewEvents {
 public:
  explicit NewEvents(TestModeServer& server) : server_(server) {}

  Events take() {
    Events taken;
    server_.mode.events().visit(next_, UINT64_MAX, [&](std::uint64_t number, const auto& text) {
      taken.push_back(text);
      next_ = number + 1;
    });
    return taken;
  }

 private:
  TestModeServer& server_;
  std::uint64_t next_ = 1;
};

std::string put_with(std::string_view tags, int delay = 0) {
  return "put 0 " + std::to_string(delay) + " 60 1 " + std::string(tags) + "\r\nx\r\n";
}

// A member of the group g, which is job 1, and a job that waits for the group, which is job 2.
struct ServerWithGroup {
  ServerWithGroup() {
    server.send(client, put_with("grp:g") + put_with("aft:g"));
    CHECK(events.take() == Events{"put 1 default", "put 2 default", "hold 2"});
  }

  TestModeServer server;
  Conversation& client = server.client();
  NewEvents events{server};
};

}  // namespace

// --- Groups

TEST_CASE("a job that waits for its group is held at its put, and ready after the group") {
  ServerWithGroup with;
  CHECK(with.server.send(with.client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});
  CHECK(with.server.say("test-await unhold 1 0") == "AWAITED 1\r\n");
  CHECK(with.server.say("test-await hold 1 0") == "AWAITED 1\r\n");
  CHECK(with.server.say("test-await delete 2 0") == "TIMED_OUT\r\n");
}

TEST_CASE("a client that waits gets the job after the event that it is ready") {
  ServerWithGroup with;
  with.server.send(with.client, "reserve\r\n");
  auto& waiting = with.server.client();
  with.server.send(waiting, "reserve\r\n");
  with.server.send(with.client, "delete 1\r\n");
  CHECK(with.server.replies(waiting) == "RESERVED 2 1\r\nx\r\n");
  CHECK(with.events.take() == Events{"reserve 1 c1", "delete 1", "unhold 2", "reserve 2 c2"});
}

TEST_CASE("a delay that ends is an event only if the job is then held") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put_with("grp:g") + put_with("aft:g", 10) + put_with("aft:none", 10) +
                          put_with("idp:k", 10));
  CHECK(events.take().size() == 4);
  CHECK(server.say("test-advance 10") == "ADVANCED 10000\r\n");
  CHECK(events.take() == Events{"hold 2"});
  server.send(client, "delete 1\r\n");
  CHECK(events.take() == Events{"delete 1", "unhold 2"});
}

TEST_CASE("a flush that ends a group makes the jobs that wait for it ready") {
  ServerWithGroup with;
  with.server.send(with.client, "use other\r\n" + put_with("aft:g"));
  CHECK(with.events.take() == Events{"put 3 other", "hold 3"});
  CHECK(with.server.send(with.client, "flush-tube default\r\n") == "FLUSHED 2\r\n");
  with.server.tick();
  CHECK(with.events.take() == Events{"flush default", "unhold 3"});
}

TEST_CASE("a flush of one state ends a group as deletes do") {
  ServerWithGroup with;
  CHECK(with.server.send(with.client, "flush-tube default ready\r\n") == "FLUSHED 1\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});
}

TEST_CASE("a held job that a client kicks is kicked") {
  ServerWithGroup with;
  CHECK(with.server.send(with.client, "kick-job 2\r\n") == "KICKED\r\n");
  CHECK(with.events.take() == Events{"kick 2"});
  with.server.send(with.client, "delete 1\r\n");
  CHECK(with.events.take() == Events{"delete 1"});

  ServerWithGroup delayed;
  CHECK(delayed.server.send(delayed.client, "kick-job 2 5\r\n") == "KICKED\r\n");
  CHECK(delayed.server.say("test-advance 5") == "ADVANCED 5000\r\n");
  CHECK(delayed.events.take() == Events{"kick 2"});
}

TEST_CASE("a move is one event, also of a held job") {
  ServerWithGroup with;
  CHECK(with.server.send(with.client, "move-job 2 other\r\n") == "MOVED\r\n");
  CHECK(with.events.take() == Events{"move 2 other"});
  with.server.send(with.client, "delete 1\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});

  ServerWithGroup placed;
  CHECK(placed.server.send(placed.client, "move-job 2 default 0 0\r\n") == "MOVED\r\n");
  CHECK(placed.events.take() == Events{"move 2 default"});
}

TEST_CASE("moves of reserved, buried and delayed jobs are moves and nothing else") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put(0) + put(0) + put(0) + put(50));
  server.send(client,
              "reserve-job 1\r\nreserve-job 2\r\nbury 2 0\r\nreserve-job 3\r\nbury 3 0\r\n");
  events.take();
  server.send(client, "move-job 1 other\r\nmove-job 2 other 0 0\r\nmove-jobs default buried b\r\n");
  CHECK(events.take() == Events{"move 1 other", "move 2 other", "move 3 b"});
  server.send(client, "move-jobs default delayed d\r\nmove-job 9 d\r\n");
  CHECK(events.take() == Events{"move 4 d"});
  // Their counters are known after the move.
  server.send(client, "reserve-job 1\r\nrelease 1 0 0\r\nkick-job 3\r\n");
  CHECK(events.take() == Events{"reserve 1 c1", "release 1", "kick 3"});
}

TEST_CASE("a held job that gets another priority stays held") {
  ServerWithGroup with;
  CHECK(with.server.send(with.client, "reprioritize 2 5\r\n") == "REPRIORITIZED\r\n");
  CHECK(with.events.take() == Events{"reprioritize 2"});
  with.server.send(with.client, "put 9 0 60 1 idp:k\r\nx\r\nput 1 0 60 1 idp:k\r\nx\r\n");
  CHECK(with.events.take() == Events{"put 3 default", "reprioritize 3"});
}

TEST_CASE("a snapshot and a load keep which jobs are held") {
  ServerWithGroup with;
  CHECK(with.server.say("test-snapshot s") == "SNAPSHOT 2\r\n");
  const std::string reply = with.server.say("test-dump");
  const std::string dump = reply.substr(reply.find("\r\n") + 2);
  CHECK(with.server.say("test-restore s") == "RESTORED 2\r\n");
  CHECK(with.server.send(with.client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(NewEvents(with.server).take() == Events{"delete 1", "unhold 2"});
  CHECK(with.server.say("test-reset") == "RESET\r\n");
  const std::string load = "test-load " + std::to_string(dump.size() - 2) + "\r\n" + dump;
  CHECK(with.server.send(*with.server.control, load) == "LOADED 2\r\n");
  CHECK(NewEvents(with.server).take() == Events{"put 1 default", "put 2 default", "hold 2"});
}

TEST_CASE("a member of a group that expires ends the group") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put_with("grp:g ttl:5") + put_with("aft:g"));
  events.take();
  CHECK(server.say("test-advance 5") == "ADVANCED 5000\r\n");
  CHECK(events.take() == Events{"expire 1 delete", "unhold 2"});
}

TEST_CASE("a held job that expires is not ready") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put_with("grp:g") + put_with("aft:g ttl:5"));
  events.take();
  CHECK(server.say("test-advance 5") == "ADVANCED 5000\r\n");
  server.send(client, "delete 1\r\n");
  CHECK(events.take() == Events{"expire 2 delete", "delete 1"});
}

// --- Expiry

TEST_CASE("a job that expires at rest is no client's delete, bury or disconnect") {
  for (const std::string place : {"delete", "bury", "old"}) {
    CAPTURE(place);
    TestModeServer server;
    auto& client = server.client();
    NewEvents events(server);
    server.send(client, "tube-policy default ttl 5\r\ntube-policy default expired " + place +
                            "\r\n" + put(0) + put(9) + put(0));
    server.send(client, "reserve-job 3\r\nbury 3 0\r\n");
    events.take();
    CHECK(server.say("test-advance 60") == "ADVANCED 60000\r\n");
    Events expected;
    for (const std::string id : {"1 ", "2 "}) {
      expected.push_back("expire " + id + place);
      if (place == "old") expected.push_back("move " + id + place);
    }
    CHECK(events.take() == expected);
    // The job is as any other after that.
    if (place == "old") {
      server.send(client, "reserve-job 1\r\nrelease 1 0 0\r\ndelete 1\r\n");
      CHECK(events.take() == Events{"reserve 1 c1", "release 1", "delete 1"});
    } else if (place == "bury") {
      server.send(client, "kick-job 1\r\ndelete 1\r\n");
      CHECK(events.take() == Events{"kick 1", "delete 1"});
    }
  }
}

TEST_CASE("a job that expires when it comes back has both events") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  const std::string job = "put 0 0 20 1 ttl:5\r\nx\r\n";
  server.send(client, job + job + "reserve\r\nreserve\r\n");
  events.take();
  server.say("test-advance 10");
  CHECK(events.take().empty());
  server.send(client, "release 1 0 0\r\n");
  CHECK(events.take() == Events{"release 1", "expire 1 delete"});
  server.say("test-advance 10");
  CHECK(events.take() == Events{"timeout 2", "expire 2 delete"});
  CHECK(server.say("test-await delete 1 0") == "TIMED_OUT\r\n");
}

// --- Death

TEST_CASE("a dead job has the event of its return, and then that it is dead") {
  for (const std::string place : {"delete", "bury", "old"}) {
    for (const std::string how : {"release", "timeout", "disconnect"}) {
      CAPTURE(place);
      CAPTURE(how);
      TestModeServer server;
      auto& client = server.client();
      NewEvents events(server);
      server.send(client, "tube-policy default max-attempts 2\r\ntube-policy default dead " +
                              place + "\r\n" + put(0));
      server.send(client, "reserve\r\nrelease 1 0 0\r\nreserve\r\n");
      CHECK(events.take() == Events{"put 1 default", "reserve 1 c1", "release 1", "reserve 1 c1"});
      if (how == "release") server.send(client, "release 1 0 0\r\n");
      if (how == "timeout") server.say("test-advance 60");
      if (how == "disconnect") server.clients.pop_back();
      Events expected = {how + " 1", "dead 1 " + place};
      if (place == "old") expected.push_back("move 1 old");
      CHECK(events.take() == expected);
      CHECK(server.say("test-await dead 1 0") == "AWAITED 1\r\n");
    }
  }
}

TEST_CASE("a job is dead after too many timeouts or releases, and alive after a kick") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client,
              "tube-policy default max-timeouts 1\r\ntube-policy default max-releases 1\r\n");
  server.send(client, put(0) + "reserve\r\n");
  server.say("test-advance 60");
  CHECK(events.take() == Events{"put 1 default", "reserve 1 c1", "timeout 1", "dead 1 bury"});
  server.send(client, "kick-job 1\r\nreserve\r\nbury 1 0\r\nkick-job 1\r\n");
  CHECK(events.take() == Events{"kick 1", "reserve 1 c1", "bury 1", "kick 1"});
  server.send(client, "reserve\r\nrelease 1 0 9\r\n");
  CHECK(events.take() == Events{"reserve 1 c1", "release 1", "dead 1 bury"});
}

TEST_CASE("a dead member that is deleted ends its group") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put_with("grp:g max:1:delete") + put_with("aft:g") + "reserve\r\n");
  events.take();
  server.send(client, "release 1 0 0\r\n");
  CHECK(events.take() == Events{"release 1", "dead 1 delete", "unhold 2"});
}

TEST_CASE("a dead job that is deleted leaves its cooldown, which ends without an event") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  const std::string job = put_with("idp:k:30 max:1:delete");
  server.send(client, job + "reserve\r\nrelease 1 0 0\r\n");
  CHECK(events.take() == Events{"put 1 default", "reserve 1 c1", "release 1", "dead 1 delete"});
  server.say("test-advance 30");
  server.send(client, job);
  CHECK(events.take() == Events{"put 2 default"});
}

TEST_CASE("a backoff delays the job and is no event of its own") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, "tube-policy default backoff 10\r\n" + put(0) + "reserve\r\n");
  events.take();
  server.send(client, "release 1 0 0\r\n");
  CHECK(events.take() == Events{"release 1"});
  server.say("test-advance 20");
  CHECK(events.take().empty());
  server.send(client, "reserve\r\n");
  server.say("test-advance 60");
  CHECK(events.take() == Events{"reserve 1 c1", "timeout 1"});
}

// --- Truncated tubes

TEST_CASE("a job that a client holds is flushed once by truncate") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put(0) + put(0) + "reserve\r\nreserve\r\n");
  events.take();
  CHECK(server.send(client, "truncate default\r\ndelete 1\r\n") == "TRUNCATED 0\r\nDELETED\r\n");
  server.say("test-advance 60");
  CHECK(events.take() == Events{"flush default", "delete 1"});
}

TEST_CASE("a truncated job that flush-tube takes from its holder is not deleted again") {
  TestModeServer server;
  auto& client = server.client();
  NewEvents events(server);
  server.send(client, put(0) + "reserve\r\n");
  events.take();
  CHECK(server.send(client, "truncate default\r\nflush-tube default reserved\r\ndelete 1\r\n") ==
        "TRUNCATED 0\r\nFLUSHED 0\r\nNOT_FOUND\r\n");
  CHECK(events.take() == Events{"flush default"});
}

}  // namespace tubed::test_mode
