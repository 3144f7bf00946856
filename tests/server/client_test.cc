#include "serving/client.h"

#include "tests/server/test_client.h"

namespace tubed::server_test {

using loop_test::half_close;
using loop_test::read_some;
using loop_test::read_to_end;
using loop_test::run_ticks;
using loop_test::run_until;
using loop_test::write_all;

namespace {

// Runs the loop until the client is dirty, and clears the list of dirty clients.
void await_dirty(TestClient& remote) {
  auto& dirty = remote.server.host.dirty;
  REQUIRE(run_until(remote.server.loop, [&] { return !dirty.empty(); }));
  CHECK(dirty.front() == &remote.client);
  dirty.clear();
}

// One fact was appended, and is durable after commit().
class SlowLog final : public NullLog {
 public:
  SlowLog() { appended_ = 1; }
  void commit() { durable_ = appended_; }
};

}  // namespace

TEST_CASE("input is handled in a tick, and its replies wait to be written") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "list-tube-used\r\nput 0 0 10 2\r\nhi\r\n");
  await_dirty(remote);
  CHECK(server.host.ticks == 1);
  CHECK(read_some(remote.peer).empty());
  CHECK_FALSE(remote.client.done());
  CHECK(remote.client.write(NullLog()));
  CHECK(read_some(remote.peer) == "USING default\r\nINSERTED 1\r\n");
  CHECK_FALSE(remote.client.write(NullLog()));  // no replies are left
  CHECK_FALSE(remote.client.done());
}

TEST_CASE("a body arrives complete, however it is split and wherever it is read to") {
  TestServer server;
  TestClient remote(server);
  for (const std::size_t size : {10U, 4095U, 4096U, 5000U, 65535U}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    const std::string put = "put 0 0 10 " + std::to_string(size) + "\r\n" + body + "\r\n";
    // A part of the body, then the rest with the beginning of what follows.
    const std::size_t cut = put.size() - body.size() / 2 - 2;
    write_all(remote.peer, put.substr(0, cut));
    await_dirty(remote);
    write_all(remote.peer, put.substr(cut) + "reserve\r\n");
    const auto& replies = remote.client.conversation().replies();
    REQUIRE(run_until(server.loop, [&] { return replies.size() > size; }));
    const std::string id = std::to_string(server.service.engine().info().total_jobs);
    CHECK(remote.take_replies() == "INSERTED " + id + "\r\nRESERVED " + id + " " +
                                       std::to_string(size) + "\r\n" + body + "\r\n");
    server.host.dirty.clear();
  }
}

TEST_CASE("a client is done when the peer has ended and all replies are sent") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "list-tube-used\r\n");
  half_close(remote.peer);
  REQUIRE(run_until(server.loop, [&] { return remote.client.conversation().finished(); }));
  CHECK_FALSE(remote.client.done());
  remote.client.write(NullLog());
  CHECK(remote.client.done());
  CHECK(read_some(remote.peer) == "USING default\r\n");
}

TEST_CASE("a client is done after quit") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "quit\r\nlist-tube-used\r\n");
  await_dirty(remote);
  CHECK(remote.client.done());
}

TEST_CASE("a client is done when the connection breaks, whatever is unsent") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "list-tube-used\r\n");
  await_dirty(remote);
  remote.peer = os::Socket();
  remote.client.write(NullLog());
  CHECK(remote.client.done());
}

TEST_CASE("a half-close ends a wait while nothing is read") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "reserve\r\n");
  await_dirty(remote);
  remote.client.update_interest();
  // It reads once more while it waits; further input stays in the kernel.
  write_all(remote.peer, "list-tube-used\r\n");
  await_dirty(remote);
  remote.client.update_interest();
  write_all(remote.peer, "list-tubes-watched\r\n");
  run_ticks(server.loop, 5);
  CHECK(server.host.dirty.empty());
  half_close(remote.peer);
  await_dirty(remote);
  remote.client.update_interest();
  REQUIRE(run_until(server.loop, [&] { return remote.client.conversation().finished(); }));
  CHECK(remote.take_replies() == "TIMED_OUT\r\nUSING default\r\nOK 14\r\n---\n- default\n\r\n");
}

TEST_CASE("a finishing client is done when its input is answered") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "list-tube-used\r\n");
  await_dirty(remote);
  remote.client.finish();
  CHECK_FALSE(remote.client.done());
  remote.client.write(NullLog());
  CHECK(remote.client.done());
  CHECK(read_some(remote.peer) == "USING default\r\n");
}

TEST_CASE(
    "a finishing client with unread input waits for the end of its peer, so that no reply is "
    "lost") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "list-tube-used\r\n");
  await_dirty(remote);
  remote.client.finish();
  write_all(remote.peer, "list-tube-used\r\n");
  remote.client.write(NullLog());
  CHECK_FALSE(remote.client.done());
  remote.client.update_interest();
  CHECK(read_to_end(remote.peer) == "USING default\r\n");
  await_dirty(remote);
  CHECK_FALSE(remote.client.done());
  remote.client.update_interest();
  write_all(remote.peer, "list-tube-used\r\n");
  await_dirty(remote);
  CHECK_FALSE(remote.client.done());
  half_close(remote.peer);
  REQUIRE(run_until(server.loop, [&] { return remote.client.done(); }));
  CHECK(remote.client.conversation().replies().empty());  // later input was dropped
}

TEST_CASE("a waiting client is done as soon as it finishes") {
  TestServer server;
  TestClient remote(server);
  write_all(remote.peer, "reserve\r\n");
  await_dirty(remote);
  CHECK_FALSE(remote.client.done());
  remote.client.finish();
  CHECK(remote.client.done());
}

TEST_CASE("a finishing client with deferred work is done after that work") {
  TestServer server;
  server.service.set_limits({.work_per_turn = 10}, {});
  TestClient remote(server);
  std::string batch;
  std::string answers;
  for (int i = 0; i < 35; ++i) {
    batch += "list-tube-used\r\n";
    answers += "USING default\r\n";
  }
  write_all(remote.peer, batch);
  await_dirty(remote);
  remote.client.finish();
  int rounds = 0;
  std::string taken = remote.take_replies();
  while (!remote.client.done()) {
    REQUIRE(++rounds < 10);
    remote.client.conversation().resume();
    taken += remote.take_replies();
  }
  CHECK(rounds == 3);
  CHECK(taken == answers);
}

TEST_CASE(
    "a client is deferred when the budget of the tick is spent, and reads when it is resumed") {
  TestServer server;
  TestClient remote(server);
  auto& budget = server.service.tick_budget();
  budget.spend_all();
  write_all(remote.peer, "list-tube-used\r\n");
  half_close(remote.peer);
  auto& deferred = server.host.deferred;
  REQUIRE(run_until(server.loop, [&] { return !deferred.empty(); }));
  CHECK(deferred.front() == &remote.client);
  CHECK_FALSE(remote.client.is_light());  // unknown until it has read
  run_ticks(server.loop, 5);
  CHECK(deferred.size() == 1);
  CHECK(remote.take_replies().empty());
  CHECK(server.host.dirty.empty());
  budget.begin({}, 0);
  remote.client.queued.deferred = false;
  remote.client.resume();
  CHECK(remote.take_replies() == "USING default\r\n");
  CHECK(remote.client.is_light());
  remote.client.update_interest();
  REQUIRE(run_until(server.loop, [&] { return remote.client.conversation().finished(); }));
}

TEST_CASE("a deferred client that finishes is not read from") {
  TestServer server;
  TestClient remote(server);
  server.service.tick_budget().spend_all();
  write_all(remote.peer, "list-tube-used\r\n");
  REQUIRE(run_until(server.loop, [&] { return !server.host.deferred.empty(); }));
  server.service.tick_budget().begin({}, 0);
  remote.client.finish();
  remote.client.queued.deferred = false;
  remote.client.resume();
  CHECK(remote.take_replies().empty());
}

TEST_CASE("a closed client releases its jobs and ends the stream") {
  TestServer server;
  TestClient stays(server);
  {
    TestClient goes(server);
    goes.sends("put 0 0 100 1\r\nx\r\nreserve\r\n");
    CHECK(goes.take_replies() == "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
    stays.sends("reserve-with-timeout 0\r\n");
    CHECK(stays.take_replies() == "TIMED_OUT\r\n");
  }
  stays.sends("reserve-with-timeout 0\r\n");
  CHECK(stays.take_replies() == "RESERVED 1 1\r\nx\r\n");
}

TEST_CASE("a client is held back while input is not accepted") {
  TestServer server;
  TestClient remote(server);
  server.host.reads = false;
  CHECK(remote.client.is_input_paused());
  server.host.reads = true;
  CHECK_FALSE(remote.client.is_input_paused());
}

TEST_CASE("a reply that is not durable yet is held back, and does not count as unsent") {
  TestServer server;
  TestClient remote(server);
  remote.sends("use a\r\n");
  SlowLog log;
  CHECK_FALSE(remote.client.write(log));
  CHECK(remote.client.is_gated());
  CHECK_FALSE(remote.client.has_unsent());
  log.commit();
  CHECK(remote.client.write(log));
  CHECK_FALSE(remote.client.is_gated());
}

}  // namespace tubed::server_test
