// The events of a job whose life tags and policies decide about: each event follows from what
// happened to the job, whichever command ran at that moment.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/test_mode/world.h"

namespace tubed::test_mode {

namespace {

using Events = std::vector<std::string>;

// The events since the last call for this world, without their numbers.
class NewEvents {
 public:
  explicit NewEvents(World& world) : world_(world) {}

  Events take() {
    Events taken;
    world_.mode.events().visit(next_, UINT64_MAX, [&](std::uint64_t number, const auto& text) {
      taken.push_back(text);
      next_ = number + 1;
    });
    return taken;
  }

 private:
  World& world_;
  std::uint64_t next_ = 1;
};

std::string put_with(std::string_view tags, int delay = 0) {
  return "put 0 " + std::to_string(delay) + " 60 1 " + std::string(tags) + "\r\nx\r\n";
}

// A member of the group g, which is job 1, and a job that waits for the group, which is job 2.
struct GroupWorld {
  GroupWorld() {
    world.send(client, put_with("grp:g") + put_with("aft:g"));
    CHECK(events.take() == Events{"put 1 default", "put 2 default", "hold 2"});
  }

  World world;
  Conversation& client = world.client();
  NewEvents events{world};
};

}  // namespace

// --- Groups

TEST_CASE("a job that waits for its group is held at its put, and ready after the group") {
  GroupWorld with;
  CHECK(with.world.send(with.client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});
  CHECK(with.world.say("test-await unhold 1 0") == "AWAITED 1\r\n");
  CHECK(with.world.say("test-await hold 1 0") == "AWAITED 1\r\n");
  CHECK(with.world.say("test-await delete 2 0") == "TIMED_OUT\r\n");
}

TEST_CASE("a client that waits gets the job after the event that it is ready") {
  GroupWorld with;
  with.world.send(with.client, "reserve\r\n");
  auto& waiting = with.world.client();
  with.world.send(waiting, "reserve\r\n");
  with.world.send(with.client, "delete 1\r\n");
  CHECK(with.world.replies(waiting) == "RESERVED 2 1\r\nx\r\n");
  CHECK(with.events.take() == Events{"reserve 1 c1", "delete 1", "unhold 2", "reserve 2 c2"});
}

TEST_CASE("a delay that ends is an event only if the job is then held") {
  World world;
  auto& client = world.client();
  NewEvents events(world);
  world.send(client, put_with("grp:g") + put_with("aft:g", 10) + put_with("aft:none", 10) +
                         put_with("idp:k", 10));
  CHECK(events.take().size() == 4);
  CHECK(world.say("test-advance 10") == "ADVANCED 10000\r\n");
  CHECK(events.take() == Events{"hold 2"});
  world.send(client, "delete 1\r\n");
  CHECK(events.take() == Events{"delete 1", "unhold 2"});
}

TEST_CASE("a flush that ends a group makes the jobs that wait for it ready") {
  GroupWorld with;
  with.world.send(with.client, "use other\r\n" + put_with("aft:g"));
  CHECK(with.events.take() == Events{"put 3 other", "hold 3"});
  CHECK(with.world.send(with.client, "flush-tube default\r\n") == "FLUSHED 2\r\n");
  with.world.tick();
  CHECK(with.events.take() == Events{"flush default", "unhold 3"});
}

TEST_CASE("a flush of one state ends a group as deletes do") {
  GroupWorld with;
  CHECK(with.world.send(with.client, "flush-tube default ready\r\n") == "FLUSHED 1\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});
}

TEST_CASE("a held job that a client kicks is kicked") {
  GroupWorld with;
  CHECK(with.world.send(with.client, "kick-job 2\r\n") == "KICKED\r\n");
  CHECK(with.events.take() == Events{"kick 2"});
  with.world.send(with.client, "delete 1\r\n");
  CHECK(with.events.take() == Events{"delete 1"});

  GroupWorld delayed;
  CHECK(delayed.world.send(delayed.client, "kick-job 2 5\r\n") == "KICKED\r\n");
  CHECK(delayed.world.say("test-advance 5") == "ADVANCED 5000\r\n");
  CHECK(delayed.events.take() == Events{"kick 2"});
}

TEST_CASE("a move is one event, also of a held job") {
  GroupWorld with;
  CHECK(with.world.send(with.client, "move-job 2 other\r\n") == "MOVED\r\n");
  CHECK(with.events.take() == Events{"move 2 other"});
  with.world.send(with.client, "delete 1\r\n");
  CHECK(with.events.take() == Events{"delete 1", "unhold 2"});

  GroupWorld placed;
  CHECK(placed.world.send(placed.client, "move-job 2 default 0 0\r\n") == "MOVED\r\n");
  CHECK(placed.events.take() == Events{"move 2 default"});
}

TEST_CASE("moves of reserved, buried and delayed jobs are moves and nothing else") {
  World world;
  auto& client = world.client();
  NewEvents events(world);
  world.send(client, put(0) + put(0) + put(0) + put(50));
  world.send(client, "reserve-job 1\r\nreserve-job 2\r\nbury 2 0\r\nreserve-job 3\r\nbury 3 0\r\n");
  events.take();
  world.send(client, "move-job 1 other\r\nmove-job 2 other 0 0\r\nmove-jobs default buried b\r\n");
  CHECK(events.take() == Events{"move 1 other", "move 2 other", "move 3 b"});
  world.send(client, "move-jobs default delayed d\r\nmove-job 9 d\r\n");
  CHECK(events.take() == Events{"move 4 d"});
  // Their counters are known after the move.
  world.send(client, "reserve-job 1\r\nrelease 1 0 0\r\nkick-job 3\r\n");
  CHECK(events.take() == Events{"reserve 1 c1", "release 1", "kick 3"});
}

TEST_CASE("a held job that gets another priority stays held") {
  GroupWorld with;
  CHECK(with.world.send(with.client, "reprioritize 2 5\r\n") == "REPRIORITIZED\r\n");
  CHECK(with.events.take() == Events{"reprioritize 2"});
  with.world.send(with.client, "put 9 0 60 1 idp:k\r\nx\r\nput 1 0 60 1 idp:k\r\nx\r\n");
  CHECK(with.events.take() == Events{"put 3 default", "reprioritize 3"});
}

TEST_CASE("a snapshot and a load keep which jobs are held") {
  GroupWorld with;
  CHECK(with.world.say("test-snapshot s") == "SNAPSHOT 2\r\n");
  const std::string reply = with.world.say("test-dump");
  const std::string dump = reply.substr(reply.find("\r\n") + 2);
  CHECK(with.world.say("test-restore s") == "RESTORED 2\r\n");
  CHECK(with.world.send(with.client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(NewEvents(with.world).take() == Events{"delete 1", "unhold 2"});
  CHECK(with.world.say("test-reset") == "RESET\r\n");
  const std::string load = "test-load " + std::to_string(dump.size() - 2) + "\r\n" + dump;
  CHECK(with.world.send(*with.world.control, load) == "LOADED 2\r\n");
  CHECK(NewEvents(with.world).take() == Events{"put 1 default", "put 2 default", "hold 2"});
}

}  // namespace tubed::test_mode
