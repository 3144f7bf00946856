#include "serving/client_timeouts.h"

#include "tests/server/test_client.h"

namespace tubed::server_test {

using namespace std::chrono_literals;
using serving::ClientTimeouts;

namespace {

constexpr Time at(Duration since_start) {
  return Time(since_start);
}

// Three clients that connect at 0 s, 1 s and 2 s, with a queue whose time does not advance.
struct TestClients {
  TestServer server;
  ClientTimeouts timeouts;
  TestClient first{server};
  TestClient second{server};
  TestClient third{server};

  explicit TestClients(const serving::TimeoutLimits& limits) {
    timeouts.set_limits(limits);
    timeouts.add(first.client, at(0s));
    timeouts.add(second.client, at(1s));
    timeouts.add(third.client, at(2s));
  }

  // The overdue clients in order. An 's' after a number: because of a stall.
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

TEST_CASE("idle clients are overdue, the longest first") {
  TestClients clients({.idle = 10s, .stall = 60s});
  CHECK(clients.timeouts.next_deadline() == at(10s));
  CHECK(clients.overdue(at(10s - 1ns)).empty());
  CHECK(clients.overdue(at(10s)) == "1");
  CHECK(clients.overdue(at(12s)) == "123");
}

TEST_CASE("input restarts the idle timeout") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.timeouts.touch(clients.first.client, at(5s));
  CHECK(clients.timeouts.next_deadline() == at(11s));
  CHECK(clients.overdue(at(14s)) == "23");
  CHECK(clients.overdue(at(15s)) == "231");
}

TEST_CASE("a removed client is not overdue") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.timeouts.remove(clients.first.client);
  CHECK(clients.timeouts.next_deadline() == at(11s));
  CHECK(clients.overdue(at(12s)) == "23");
  clients.timeouts.remove(clients.second.client);
  clients.timeouts.remove(clients.third.client);
  CHECK(clients.timeouts.next_deadline() == kNever);
  CHECK(clients.overdue(at(1h)).empty());
}

TEST_CASE("an idle timeout of zero is no limit") {
  TestClients clients({.idle = 0s, .stall = 60s});
  CHECK(clients.timeouts.next_deadline() == kNever);
  CHECK(clients.overdue(at(1000h)).empty());
}

TEST_CASE("a client that holds a job or waits for one is not idle") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.first.sends("put 0 0 100 1\r\nx\r\nreserve\r\n");
  CHECK(clients.first.take_replies() == "INSERTED 1\r\nRESERVED 1 1\r\nx\r\n");
  clients.second.sends("reserve\r\n");
  CHECK(clients.overdue(at(12s)) == "3");
  clients.timeouts.remove(clients.third.client);
  // The other two are checked again after another idle timeout, not in each tick.
  CHECK(clients.timeouts.next_deadline() == at(22s));
  clients.first.sends("delete 1\r\n");
  CHECK(clients.first.take_replies() == "DELETED\r\n");
  CHECK(clients.overdue(at(22s)) == "1");
}

TEST_CASE("a client that is looked at again has not been active") {
  TestClients clients({.idle = 10s, .stall = 60s});
  const serving::TimeoutEntry& entry = clients.first.client.timeouts;
  clients.first.sends("put 0 0 100 1\r\nx\r\nreserve\r\n");
  clients.timeouts.touch(clients.first.client, at(3s));
  CHECK(entry.last_active == at(3s));
  for (const Duration time : {13s, 23s, 33s}) {
    clients.overdue(at(time));
    CHECK(entry.idle_from == at(time));
    CHECK(entry.last_active == at(3s));
  }
  // In the same tick as it was looked at.
  clients.timeouts.touch(clients.first.client, at(33s));
  CHECK(entry.last_active == at(33s));
}

TEST_CASE("an incomplete line or body does not exempt a client from the idle timeout") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.first.sends("list-tube");
  clients.second.sends("put 0 0 100 5\r\nhe");
  CHECK(clients.overdue(at(12s)) == "123");
}

TEST_CASE("a client that does not read its replies is overdue") {
  TestClients clients({.idle = 0s, .stall = 60s});
  clients.second.sends("list-tube-used\r\n");
  clients.timeouts.update(clients.second.client, false, false, at(5s));
  CHECK(clients.timeouts.next_deadline() == at(65s));
  CHECK(clients.overdue(at(65s - 1ns)).empty());
  CHECK(clients.overdue(at(65s)) == "2s");
}

TEST_CASE("further requests do not extend the stall timeout") {
  TestClients clients({.idle = 0s, .stall = 60s});
  clients.second.sends("list-tube-used\r\n");
  clients.timeouts.update(clients.second.client, false, false, at(5s));
  clients.second.sends("list-tube-used\r\n");
  clients.timeouts.touch(clients.second.client, at(30s));
  clients.timeouts.update(clients.second.client, false, false, at(30s));
  CHECK(clients.overdue(at(65s)) == "2s");
}

TEST_CASE("progress restarts the stall timeout, and reading all replies ends it") {
  TestClients clients({.idle = 0s, .stall = 60s});
  for (TestClient* peer : {&clients.first, &clients.second}) {
    peer->sends("list-tube-used\r\n");
    clients.timeouts.update(peer->client, false, false, at(5s));
  }
  clients.timeouts.update(clients.first.client, true, false, at(50s));
  CHECK(clients.timeouts.next_deadline() == at(65s));
  CHECK(clients.overdue(at(109s)) == "2s");
  CHECK(clients.overdue(at(110s)) == "2s1s");
  clients.first.take_replies();
  clients.timeouts.update(clients.first.client, true, false, at(110s));
  CHECK(clients.overdue(at(110s)) == "2s");
  clients.timeouts.remove(clients.second.client);
  CHECK(clients.timeouts.next_deadline() == kNever);
}

TEST_CASE("a client with unread replies is not idle: only the stall timeout applies") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.first.sends("list-tube-used\r\n");
  clients.timeouts.update(clients.first.client, false, false, at(0s));
  CHECK(clients.overdue(at(30s)) == "23");
  CHECK(clients.overdue(at(60s)) == "1s23");
}

TEST_CASE("a malformed put begins no body") {
  TestClients clients({.idle = 0s, .stall = 60s});
  clients.first.sends("put x 0 100 5\r\n");
  CHECK(clients.first.take_replies() == "BAD_FORMAT\r\n");
  clients.timeouts.update(clients.first.client, true, true, at(5s));
  CHECK(clients.timeouts.next_deadline() == kNever);
  clients.first.sends("hello\r\nlist-tube-used\r\n");
  CHECK(clients.first.take_replies() == "USING default\r\n");
}

TEST_CASE("an incomplete body is overdue unless more of it arrives") {
  TestClients clients({.idle = 0s, .stall = 60s});
  for (TestClient* peer : {&clients.first, &clients.second}) {
    peer->sends("put 0 0 100 5\r\nhe");
    clients.timeouts.update(peer->client, false, true, at(5s));
  }
  clients.first.sends("l");
  clients.timeouts.update(clients.first.client, false, true, at(50s));
  CHECK(clients.timeouts.next_deadline() == at(65s));
  CHECK(clients.overdue(at(65s)) == "2s");
  clients.first.sends("lo\r\n");
  CHECK(clients.first.take_replies() == "INSERTED 1\r\n");
  clients.timeouts.update(clients.first.client, true, true, at(60s));
  CHECK(clients.overdue(at(1000s)) == "2s");
}

TEST_CASE("a client that stalls in both directions is overdue once") {
  TestClients clients({.idle = 10s, .stall = 60s});
  clients.first.sends("list-tube-used\r\nput 0 0 100 5\r\nhe");
  clients.timeouts.update(clients.first.client, false, true, at(2s));
  CHECK(clients.overdue(at(62s)) == "1s23");
}

TEST_CASE("the slowest of several readers is known") {
  TestClients clients({.idle = 0s, .stall = 60s});
  CHECK(clients.timeouts.slowest_reader() == nullptr);
  clients.second.sends("list-tube-used\r\n");
  clients.timeouts.update(clients.second.client, false, false, at(1s));
  CHECK(clients.timeouts.slowest_reader() == nullptr);  // undecided with a single reader
  clients.first.sends("list-tube-used\r\n");
  clients.timeouts.update(clients.first.client, false, false, at(2s));
  CHECK(clients.timeouts.slowest_reader() == &clients.second.client);
}

TEST_CASE("new limits apply to connected clients") {
  TestClients clients({.idle = 0s, .stall = 60s});
  CHECK(clients.timeouts.next_deadline() == kNever);
  clients.timeouts.set_limits({.idle = 1s, .stall = 60s});
  CHECK(clients.overdue(at(2s)) == "12");
}

}  // namespace tubed::server_test
