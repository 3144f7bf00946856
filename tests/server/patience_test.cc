#include "server/patience.h"

#include "tests/server/party.h"

namespace tubed::server_test {

using namespace std::chrono_literals;
using server::Patience;

namespace {

constexpr Time at(Duration since_start) {
  return Time(since_start);
}

// Three clients that came at 0 s, 1 s and 2 s, in a queue whose clock stands still.
struct Room {
  House house;
  Patience patience;
  Party first{house};
  Party second{house};
  Party third{house};

  explicit Room(const server::PatienceLimits& limits) {
    patience.set_limits(limits);
    patience.add(first.client, at(0s));
    patience.add(second.client, at(1s));
    patience.add(third.client, at(2s));
  }

  // The clients that are overdue, in order; 's' behind a name: for not taking their replies.
  std::string overdue(Time now) {
    std::string names;
    for (const auto& [client, reason] : patience.overdue(now)) {
      names += client == &first.client ? "1" : client == &second.client ? "2" : "3";
      if (reason == Patience::Reason::stall) names += "s";
    }
    return names;
  }
};

}  // namespace

TEST_CASE("who has said nothing for too long is overdue, longest first") {
  Room room({.idle = 10s, .stall = 60s});
  CHECK(room.patience.next_deadline() == at(10s));
  CHECK(room.overdue(at(10s - 1ns)).empty());
  CHECK(room.overdue(at(10s)) == "1");
  CHECK(room.overdue(at(12s)) == "123");
}

TEST_CASE("who says something has its whole time again") {
  Room room({.idle = 10s, .stall = 60s});
  room.patience.active(room.first.client, at(5s));
  CHECK(room.patience.next_deadline() == at(11s));
  CHECK(room.overdue(at(14s)) == "23");
  CHECK(room.overdue(at(15s)) == "231");
}

TEST_CASE("who has gone is not overdue") {
  Room room({.idle = 10s, .stall = 60s});
  room.patience.remove(room.first.client);
  CHECK(room.patience.next_deadline() == at(11s));
  CHECK(room.overdue(at(12s)) == "23");
  room.patience.remove(room.second.client);
  room.patience.remove(room.third.client);
  CHECK(room.patience.next_deadline() == kNever);
  CHECK(room.overdue(at(1h)).empty());
}

TEST_CASE("an idle time of zero is for ever") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.patience.next_deadline() == kNever);
  CHECK(room.overdue(at(1000h)).empty());
}

TEST_CASE("who holds a job or waits for one is not idle") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.says("put 0 0 100 1\r\nx\r\nreserve\r\n");
  CHECK(room.first.takes() == "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
  room.second.says("reserve\r\n");
  CHECK(room.overdue(at(12s)) == "3");
  room.patience.remove(room.third.client);
  // They are looked at again when as much has passed, not all the time.
  CHECK(room.patience.next_deadline() == at(22s));
  room.first.says("delete 1\r\n");
  CHECK(room.first.takes() == "DELETED\r\n");
  CHECK(room.overdue(at(22s)) == "1");
}

TEST_CASE("the middle of a line or of a body is no excuse") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.says("list-tube");
  room.second.says("put 0 0 100 5\r\nhe");
  CHECK(room.overdue(at(12s)) == "123");
}

TEST_CASE("who takes nothing of its replies is overdue") {
  Room room({.idle = 0s, .stall = 60s});
  room.second.says("list-tube-used\r\n");
  room.patience.moved(room.second.client, false, false, at(5s));
  CHECK(room.patience.next_deadline() == at(65s));
  CHECK(room.overdue(at(65s - 1ns)).empty());
  CHECK(room.overdue(at(65s)) == "2s");
}

TEST_CASE("a time without progress is not lengthened by asking for more") {
  Room room({.idle = 0s, .stall = 60s});
  room.second.says("list-tube-used\r\n");
  room.patience.moved(room.second.client, false, false, at(5s));
  room.second.says("list-tube-used\r\n");
  room.patience.active(room.second.client, at(30s));
  room.patience.moved(room.second.client, false, false, at(30s));
  CHECK(room.overdue(at(65s)) == "2s");
}

TEST_CASE("some progress is enough, and to take all of them ends it") {
  Room room({.idle = 0s, .stall = 60s});
  for (Party* party : {&room.first, &room.second}) {
    party->says("list-tube-used\r\n");
    room.patience.moved(party->client, false, false, at(5s));
  }
  room.patience.moved(room.first.client, true, false, at(50s));
  CHECK(room.patience.next_deadline() == at(65s));
  CHECK(room.overdue(at(109s)) == "2s");
  CHECK(room.overdue(at(110s)) == "2s1s");
  room.first.takes();
  room.patience.moved(room.first.client, true, false, at(110s));
  CHECK(room.overdue(at(110s)) == "2s");
  room.patience.remove(room.second.client);
  CHECK(room.patience.next_deadline() == kNever);
}

TEST_CASE("replies that wait make nobody idle: only the one time counts") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.says("list-tube-used\r\n");
  room.patience.moved(room.first.client, false, false, at(0s));
  CHECK(room.overdue(at(30s)) == "23");
  CHECK(room.overdue(at(60s)) == "1s23");
}

TEST_CASE("a client whose malformed put is answered owes no body") {
  Room room({.idle = 0s, .stall = 60s});
  room.first.says("put x 0 100 5\r\n");
  CHECK(room.first.takes() == "BAD_FORMAT\r\n");
  room.patience.moved(room.first.client, true, true, at(5s));
  CHECK(room.patience.next_deadline() == kNever);
  room.first.says("hello\r\nlist-tube-used\r\n");
  CHECK(room.first.takes() == "USING default\r\n");
}

TEST_CASE("who does not finish a body is overdue, unless some of it comes") {
  Room room({.idle = 0s, .stall = 60s});
  for (Party* party : {&room.first, &room.second}) {
    party->says("put 0 0 100 5\r\nhe");
    room.patience.moved(party->client, false, true, at(5s));
  }
  room.first.says("l");
  room.patience.moved(room.first.client, false, true, at(50s));
  CHECK(room.patience.next_deadline() == at(65s));
  CHECK(room.overdue(at(65s)) == "2s");
  room.first.says("lo\r\n");
  CHECK(room.first.takes() == "INSERTED 1\r\n");
  room.patience.moved(room.first.client, true, true, at(60s));
  CHECK(room.overdue(at(1000s)) == "2s");
}

TEST_CASE("who owes a body and is owed replies is overdue once") {
  Room room({.idle = 10s, .stall = 60s});
  room.first.says("list-tube-used\r\nput 0 0 100 5\r\nhe");
  room.patience.moved(room.first.client, false, true, at(2s));
  CHECK(room.overdue(at(62s)) == "1s23");
}

TEST_CASE("of several that have replies to take the slowest is known") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.patience.slowest_taker() == nullptr);
  room.second.says("list-tube-used\r\n");
  room.patience.moved(room.second.client, false, false, at(1s));
  CHECK(room.patience.slowest_taker() == nullptr);  // it may be the only one to do so
  room.first.says("list-tube-used\r\n");
  room.patience.moved(room.first.client, false, false, at(2s));
  CHECK(room.patience.slowest_taker() == &room.second.client);
}

TEST_CASE("new limits hold for who is there") {
  Room room({.idle = 0s, .stall = 60s});
  CHECK(room.patience.next_deadline() == kNever);
  room.patience.set_limits({.idle = 1s, .stall = 60s});
  CHECK(room.overdue(at(2s)) == "12");
}

}  // namespace tubed::server_test
