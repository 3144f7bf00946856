#include "server/client_timeouts.h"

#include "tests/server/test_client.h"

namespace tubed::server_test {

using namespace std::chrono_literals;
using server::ClientTimeouts;

namespace {

constexpr Time at(Duration since_start) {
  return Time(since_start);
}

// Three clients that came at 0 s, 1 s and 2 s, in a queue whose clock stands still.
struct Room {
  TestServer server;
  ClientTimeouts timeouts;
  TestClient first{server};
  TestClient second{server};
  TestClient third{server};

  explicit Room(const server::TimeoutLimits& limits) {
    timeouts.set_limits(limits);
    timeouts.add(first.client, at(0s));
    timeouts.add(second.client, at(1s));
    timeouts.add(third.client, at(2s));
  }

  // The clients that are overdue, in order; 's' behind a name: for not taking their replies.
  std::string overdue(Time now) {
    std::string names;
    for (const auto& [client, reason] : timeouts.overdue(now)) {
      names += client == &first.client ? "1" : client == &second.client ? "2" : "3";
      if (reason == ClientTimeouts::Reason::stall) names += "s";
    }
    return names;
  }
};

}  // namespace

TEST_CASE("who has said nothing for too long is overdue, longest first") {
  Room room({.idle = 10s, .stall = 60s});
  CHECK(room.timeouts.next_deadline() == at(10s));
  CHECK(room.overdue(at(10s - 1ns)).empty());
  CHECK(room.overdue(at(10s)) == "1");
  CHECK(room.overdue(at(12s)) == "123");
}

TEST_CASE("who says something has its whole time again") {
  Room room({.idle = 10s, .stall = 60s});
  room.timeouts.touch(room.first.client, at(5s));
  CHECK(room.timeouts.next_deadline() == at(11s));
  CHECK(room.overdue(at(14s)) == "23");
  CHECK(room.overdue(at(15s)) == "231");
}

TEST_CASE("who has gone is not overdue") {
  Room room({.idle = 10s, .stall = 60s});
  room.timeouts.remove(room.first.client);
  CHECK(room.timeouts.next_deadline() == at(11s));
  CHECK(room.overdue(at(12s)) == "23");
  room.timeouts.remove(room.second.client);
  room.timeouts.remove(room.third.client);
  CHECK(room.timeouts.next_deadline() == kNever);
  CHECK(room.overdue(at(1h)).empty());
}

TEST_CASE("an idle time of zero is for ever") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.timeouts.next_deadline() == kNever);
  CHECK(room.overdue(at(1000h)).empty());
}

TEST_CASE("who holds a job or waits for one is not idle") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.sends("put 0 0 100 1\r\nx\r\nreserve\r\n");
  CHECK(room.first.take_replies() == "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
  room.second.sends("reserve\r\n");
  CHECK(room.overdue(at(12s)) == "3");
  room.timeouts.remove(room.third.client);
  // They are looked at again when as much has passed, not all the time.
  CHECK(room.timeouts.next_deadline() == at(22s));
  room.first.sends("delete 1\r\n");
  CHECK(room.first.take_replies() == "DELETED\r\n");
  CHECK(room.overdue(at(22s)) == "1");
}

TEST_CASE("the middle of a line or of a body is no excuse") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.sends("list-tube");
  room.second.sends("put 0 0 100 5\r\nhe");
  CHECK(room.overdue(at(12s)) == "123");
}

TEST_CASE("who takes nothing of its replies is overdue") {
  Room room({.idle = 0s, .stall = 60s});
  room.second.sends("list-tube-used\r\n");
  room.timeouts.update(room.second.client, false, false, at(5s));
  CHECK(room.timeouts.next_deadline() == at(65s));
  CHECK(room.overdue(at(65s - 1ns)).empty());
  CHECK(room.overdue(at(65s)) == "2s");
}

TEST_CASE("a time without progress is not lengthened by asking for more") {
  Room room({.idle = 0s, .stall = 60s});
  room.second.sends("list-tube-used\r\n");
  room.timeouts.update(room.second.client, false, false, at(5s));
  room.second.sends("list-tube-used\r\n");
  room.timeouts.touch(room.second.client, at(30s));
  room.timeouts.update(room.second.client, false, false, at(30s));
  CHECK(room.overdue(at(65s)) == "2s");
}

TEST_CASE("some progress is enough, and to take all of them ends it") {
  Room room({.idle = 0s, .stall = 60s});
  for (TestClient* peer : {&room.first, &room.second}) {
    peer->sends("list-tube-used\r\n");
    room.timeouts.update(peer->client, false, false, at(5s));
  }
  room.timeouts.update(room.first.client, true, false, at(50s));
  CHECK(room.timeouts.next_deadline() == at(65s));
  CHECK(room.overdue(at(109s)) == "2s");
  CHECK(room.overdue(at(110s)) == "2s1s");
  room.first.take_replies();
  room.timeouts.update(room.first.client, true, false, at(110s));
  CHECK(room.overdue(at(110s)) == "2s");
  room.timeouts.remove(room.second.client);
  CHECK(room.timeouts.next_deadline() == kNever);
}

TEST_CASE("replies that wait make nobody idle: only the one time counts") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.sends("list-tube-used\r\n");
  room.timeouts.update(room.first.client, false, false, at(0s));
  CHECK(room.overdue(at(30s)) == "23");
  CHECK(room.overdue(at(60s)) == "1s23");
}

TEST_CASE("a client whose malformed put is answered owes no body") {
  Room room({.idle = 0s, .stall = 60s});
  room.first.sends("put x 0 100 5\r\n");
  CHECK(room.first.take_replies() == "BAD_FORMAT\r\n");
  room.timeouts.update(room.first.client, true, true, at(5s));
  CHECK(room.timeouts.next_deadline() == kNever);
  room.first.sends("hello\r\nlist-tube-used\r\n");
  CHECK(room.first.take_replies() == "USING default\r\n");
}

TEST_CASE("who does not finish a body is overdue, unless some of it comes") {
  Room room({.idle = 0s, .stall = 60s});
  for (TestClient* peer : {&room.first, &room.second}) {
    peer->sends("put 0 0 100 5\r\nhe");
    room.timeouts.update(peer->client, false, true, at(5s));
  }
  room.first.sends("l");
  room.timeouts.update(room.first.client, false, true, at(50s));
  CHECK(room.timeouts.next_deadline() == at(65s));
  CHECK(room.overdue(at(65s)) == "2s");
  room.first.sends("lo\r\n");
  CHECK(room.first.take_replies() == "INSERTED 1\r\n");
  room.timeouts.update(room.first.client, true, true, at(60s));
  CHECK(room.overdue(at(1000s)) == "2s");
}

TEST_CASE("who owes a body and is owed replies is overdue once") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.sends("list-tube-used\r\nput 0 0 100 5\r\nhe");
  room.timeouts.update(room.first.client, false, true, at(2s));
  CHECK(room.overdue(at(62s)) == "1s23");
}

TEST_CASE("of several that have replies to take the slowest is known") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.timeouts.slowest_reader() == nullptr);
  room.second.sends("list-tube-used\r\n");
  room.timeouts.update(room.second.client, false, false, at(1s));
  CHECK(room.timeouts.slowest_reader() == nullptr);  // it may be the only one to do so
  room.first.sends("list-tube-used\r\n");
  room.timeouts.update(room.first.client, false, false, at(2s));
  CHECK(room.timeouts.slowest_reader() == &room.second.client);
}

TEST_CASE("new limits hold for who is there") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.timeouts.next_deadline() == kNever);
  room.timeouts.set_limits({.idle = 1s, .stall = 60s});
  CHECK(room.overdue(at(2s)) == "12");
}

}  // namespace tubed::server_test
