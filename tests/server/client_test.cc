#include "server/client.h"

#include "tests/server/party.h"

namespace tubed::server_test {

using loop_test::half_close;
using loop_test::read_some;
using loop_test::read_to_end;
using loop_test::run_until;
using loop_test::turn;
using loop_test::write_all;

namespace {

// Turns until the client was told of something, and forgets that it was.
void hear(Party& party) {
  auto& heard = party.house.host.looked_after;
  REQUIRE(run_until(party.house.loop, [&] { return !heard.empty(); }));
  CHECK(heard.front() == &party.client);
  heard.clear();
}

// One fact was appended, and is durable after commit().
class SlowLog final : public NullLog {
 public:
  SlowLog() { appended_ = 1; }
  void commit() { durable_ = appended_; }
};

}  // namespace

TEST_CASE("what arrives is acted on in a turn, and the replies wait to be written") {
  House house;
  Party party(house);
  write_all(party.peer, "list-tube-used\r\nput 0 0 10 2\r\nhi\r\n");
  hear(party);
  CHECK(house.host.turns == 1);
  CHECK(read_some(party.peer).empty());
  CHECK_FALSE(party.client.done());
  CHECK(party.client.write(NullLog()));
  CHECK(read_some(party.peer) == "USING default\r\nINSERTED 1\r\n");
  CHECK_FALSE(party.client.write(NullLog()));  // nothing more to take
  CHECK_FALSE(party.client.done());
}

TEST_CASE("a body comes whole, however it is cut and wherever it is read to") {
  House house;
  Party party(house);
  for (const std::size_t size : {10U, 4095U, 4096U, 5000U, 65535U}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    const std::string put = "put 0 0 10 " + std::to_string(size) + "\r\n" + body + "\r\n";
    // A part of the body, then the rest with the beginning of what follows.
    const std::size_t cut = put.size() - body.size() / 2 - 2;
    write_all(party.peer, put.substr(0, cut));
    hear(party);
    write_all(party.peer, put.substr(cut) + "reserve\r\n");
    const auto& replies = party.client.conversation().replies();
    REQUIRE(run_until(house.loop, [&] { return replies.size() > size; }));
    const std::string id = std::to_string(house.service.engine().info().total_jobs);
    CHECK(party.takes() == "INSERTED " + id + "\r\nRESERVED " + id + " " + std::to_string(size) +
                               "\r\n" + body + "\r\n");
    house.host.looked_after.clear();
  }
}

TEST_CASE("it is done when the peer has ended and everything is answered and taken") {
  House house;
  Party party(house);
  write_all(party.peer, "list-tube-used\r\n");
  half_close(party.peer);
  REQUIRE(run_until(house.loop, [&] { return party.client.conversation().finished(); }));
  CHECK_FALSE(party.client.done());
  party.client.write(NullLog());
  CHECK(party.client.done());
  CHECK(read_some(party.peer) == "USING default\r\n");
}

TEST_CASE("it is done after quit") {
  House house;
  Party party(house);
  write_all(party.peer, "quit\r\nlist-tube-used\r\n");
  hear(party);
  CHECK(party.client.done());
}

TEST_CASE("it is done when the connection breaks, whatever was still to be said") {
  House house;
  Party party(house);
  write_all(party.peer, "list-tube-used\r\n");
  hear(party);
  party.peer = os::Socket();
  party.client.write(NullLog());
  CHECK(party.client.done());
}

TEST_CASE("a half-close ends a wait while nothing is read") {
  House house;
  Party party(house);
  write_all(party.peer, "reserve\r\n");
  hear(party);
  party.client.update_interest();
  // One more read's worth is taken while it waits, then the kernel keeps the rest.
  write_all(party.peer, "list-tube-used\r\n");
  hear(party);
  party.client.update_interest();
  write_all(party.peer, "list-tubes-watched\r\n");
  turn(house.loop, 5);
  CHECK(house.host.looked_after.empty());
  half_close(party.peer);
  hear(party);
  party.client.update_interest();
  REQUIRE(run_until(house.loop, [&] { return party.client.conversation().finished(); }));
  CHECK(party.takes() == "TIMED_OUT\r\nUSING default\r\nOK 14\r\n---\n- default\n\r\n");
}

TEST_CASE("one that finishes is done when what was read is answered") {
  House house;
  Party party(house);
  write_all(party.peer, "list-tube-used\r\n");
  hear(party);
  party.client.finish();
  CHECK_FALSE(party.client.done());
  party.client.write(NullLog());
  CHECK(party.client.done());
  CHECK(read_some(party.peer) == "USING default\r\n");
}

TEST_CASE(
    "one that finishes with input unread waits for its peer's end, so that no reply is lost") {
  House house;
  Party party(house);
  write_all(party.peer, "list-tube-used\r\n");
  hear(party);
  party.client.finish();
  write_all(party.peer, "list-tube-used\r\n");
  party.client.write(NullLog());
  CHECK_FALSE(party.client.done());
  party.client.update_interest();
  CHECK(read_to_end(party.peer) == "USING default\r\n");
  hear(party);
  CHECK_FALSE(party.client.done());
  party.client.update_interest();
  write_all(party.peer, "list-tube-used\r\n");
  hear(party);
  CHECK_FALSE(party.client.done());
  half_close(party.peer);
  REQUIRE(run_until(house.loop, [&] { return party.client.done(); }));
  CHECK(party.client.conversation().replies().empty());  // what came later was dropped
}

TEST_CASE("one that waits is done as soon as it finishes") {
  House house;
  Party party(house);
  write_all(party.peer, "reserve\r\n");
  hear(party);
  CHECK_FALSE(party.client.done());
  party.client.finish();
  CHECK(party.client.done());
}

TEST_CASE("one with work left over is not done before it is") {
  House house;
  house.service.set_limits({.work_per_turn = 10}, {});
  Party party(house);
  std::string batch;
  std::string answers;
  for (int i = 0; i < 35; ++i) {
    batch += "list-tube-used\r\n";
    answers += "USING default\r\n";
  }
  write_all(party.peer, batch);
  hear(party);
  party.client.finish();
  int rounds = 0;
  std::string taken = party.takes();
  while (!party.client.done()) {
    REQUIRE(++rounds < 10);
    party.client.conversation().resume();
    taken += party.takes();
  }
  CHECK(rounds == 3);
  CHECK(taken == answers);
}

TEST_CASE("a client whose tick is spent is deferred, and read from when its turn comes") {
  House house;
  Party party(house);
  auto& budget = house.service.tick_budget();
  budget.spend_all();
  write_all(party.peer, "list-tube-used\r\n");
  half_close(party.peer);
  auto& deferred = house.host.deferred;
  REQUIRE(run_until(house.loop, [&] { return !deferred.empty(); }));
  CHECK(deferred.front() == &party.client);
  CHECK_FALSE(party.client.asks_little());  // nothing is known of it
  turn(house.loop, 5);
  CHECK(deferred.size() == 1);
  CHECK(party.takes().empty());
  CHECK(house.host.looked_after.empty());
  budget.begin({}, 0);
  party.client.deferred = false;
  party.client.go_on();
  CHECK(party.takes() == "USING default\r\n");
  CHECK(party.client.asks_little());
  party.client.update_interest();
  REQUIRE(run_until(house.loop, [&] { return party.client.conversation().finished(); }));
}

TEST_CASE("a deferred client that finishes is not read from") {
  House house;
  Party party(house);
  house.service.tick_budget().spend_all();
  write_all(party.peer, "list-tube-used\r\n");
  REQUIRE(run_until(house.loop, [&] { return !house.host.deferred.empty(); }));
  house.service.tick_budget().begin({}, 0);
  party.client.finish();
  party.client.deferred = false;
  party.client.go_on();
  CHECK(party.takes().empty());
}

TEST_CASE("a client that goes gives its jobs back and ends the stream") {
  House house;
  Party stays(house);
  {
    Party goes(house);
    goes.says("put 0 0 100 1\r\nx\r\nreserve\r\n");
    CHECK(goes.takes() == "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
    stays.says("reserve-with-timeout 0\r\n");
    CHECK(stays.takes() == "TIMED_OUT\r\n");
  }
  stays.says("reserve-with-timeout 0\r\n");
  CHECK(stays.takes() == "RESERVED 1 1\r\nx\r\n");
}

TEST_CASE("a client from which nothing is read for now is not asked for") {
  House house;
  Party party(house);
  house.host.reads = false;
  CHECK(party.client.is_held_back());
  house.host.reads = true;
  CHECK_FALSE(party.client.is_held_back());
}

TEST_CASE("a reply that tells of what is not durable stays, and nobody is blamed for it") {
  House house;
  Party party(house);
  party.says("use a\r\n");
  SlowLog log;
  CHECK_FALSE(party.client.write(log));
  CHECK(party.client.is_gated());
  CHECK_FALSE(party.client.owes_taking());
  log.commit();
  CHECK(party.client.write(log));
  CHECK_FALSE(party.client.is_gated());
}

}  // namespace tubed::server_test
