// The ticks of a server, on a real loop, with clients on socket pairs and a log that commits when
// the test says so.
#include "serving/scheduler.h"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "loop/signal.h"
#include "os/log.h"
#include "tests/loop/loopback.h"

namespace tubed::server_test {

using loop_test::read_some;
using loop_test::run_until;
using loop_test::write_all;

namespace {

// Facts are durable after commit().
class ManualLog final : public NullLog {
 public:
  void fact(const Fact&) override { ++appended_; }
  bool flush() override {
    ++flushes;
    return false;
  }
  bool congested() const override { return full; }
  void commit() { durable_ = appended_; }

  int flushes = 0;
  bool full = false;
};

struct TestHost final : serving::TickHost {
  bool complete_tick() override { return completed && completed(); }
  void tick_ended() override { ++ticks; }

  std::function<bool()> completed;
  int ticks = 0;
};

// Everything of a server but its listeners and its end.
struct Ticking {
  Ticking() {
    loop::ignore_broken_pipes();
    service.set_log(log);
    Settings settings;
    clients.set_limits(settings);
  }
  ~Ticking() { clients.close_all("test"); }

  // A connected client; returns the other end.
  os::Socket connect() {
    auto [here, there] = loop_test::connected_pair();
    scheduler.begin_tick();
    scheduler.mark_dirty(clients.add(loop::open_channel(loop, std::move(here), {}), scheduler));
    return std::move(there);
  }

  // Runs the loop until the peer has received `expected`.
  bool receives(const os::Socket& peer, const std::string& expected) {
    std::string received;
    return run_until(loop, [&] { return (received += read_some(peer)) == expected; });
  }
  void commit() {
    log.commit();
    scheduler.log_advanced();
  }
  void run_a_while() { loop_test::run_ticks(loop, 10); }

  loop::Loop loop;
  os::Log quiet{[](std::string_view) { return true; }, [] { return Duration(); }};
  commands::Service service{Limits{}, stats::ProcessIdentity{}, {[] { return stats::CpuTimes{}; }}};
  ManualLog log;
  TestHost host;
  serving::Clients clients{quiet, service};
  serving::Scheduler scheduler{loop, service, clients, host};
};

}  // namespace

TEST_CASE("a reply is sent in its tick when it waits for no fact") {
  Ticking server;
  const os::Socket peer = server.connect();
  write_all(peer, "list-tube-used\r\n");
  CHECK(server.receives(peer, "USING default\r\n"));
}

TEST_CASE("replies wait for the log, and are sent when it has advanced") {
  Ticking server;
  const os::Socket producer = server.connect();
  const os::Socket reader = server.connect();
  write_all(producer, "put 0 0 60 1\r\nx\r\n");
  REQUIRE(run_until(server.loop, [&] { return server.log.appended() == 1; }));
  // A read shows the job, so it waits for the same fact.
  write_all(reader, "peek 1\r\n");
  server.run_a_while();
  CHECK(read_some(producer).empty());
  CHECK(read_some(reader).empty());
  server.commit();
  CHECK(server.receives(producer, "INSERTED 1\r\n"));
  CHECK(server.receives(reader, "FOUND 1 1\r\nx\r\n"));
}

TEST_CASE("a client that was closed is found by no queue") {
  Ticking server;
  os::Socket peer = server.connect();
  write_all(peer, "put 0 0 60 1\r\nx\r\n");
  REQUIRE(run_until(server.loop, [&] { return server.log.appended() == 1; }));
  peer = os::Socket();  // gated, and its peer is gone
  REQUIRE(run_until(server.loop, [&] {
    server.commit();
    return server.clients.count() == 0;
  }));
  server.scheduler.log_advanced();
  server.run_a_while();
  CHECK(server.clients.count() == 0);
}

TEST_CASE("a command that waits for a congested log runs when the log takes facts again") {
  Ticking server;
  const os::Socket peer = server.connect();
  server.log.full = true;
  write_all(peer, "list-tube-used\r\nput 0 0 60 1\r\nx\r\n");
  CHECK(server.receives(peer, "USING default\r\n"));
  server.run_a_while();
  CHECK(server.log.appended() == 0);
  server.log.full = false;
  server.scheduler.log_advanced();
  REQUIRE(run_until(server.loop, [&] { return server.log.appended() == 1; }));
}

TEST_CASE("a light client is served while a heavy one has work for many ticks") {
  Ticking server;
  server.service.set_limits({.work_per_turn = 10}, {});
  const os::Socket heavy = server.connect();
  const os::Socket light = server.connect();
  std::string batch;
  std::string replies;
  for (int i = 0; i < 2000; ++i) {
    batch += "list-tube-used\r\n";
    replies += "USING default\r\n";
  }
  write_all(heavy, batch);
  server.loop.run_once();
  write_all(light, "list-tube-used\r\n");
  CHECK(server.receives(light, "USING default\r\n"));
  const std::string done = read_some(heavy);
  CHECK(done.size() < replies.size());
  std::string received = done;
  CHECK(run_until(server.loop, [&] { return (received += read_some(heavy)) == replies; }));
}

TEST_CASE("the host settles a tick only while the server winds down, until no client is dirty") {
  Ticking server;
  const os::Socket peer = server.connect();
  int completed = 0;
  server.host.completed = [&] {
    if (++completed > 2) return false;
    server.scheduler.mark_all_dirty();
    return true;
  };
  server.run_a_while();
  CHECK(completed == 0);
  server.scheduler.set_winding_down(true);
  server.scheduler.begin_tick();
  server.loop.run_once();
  CHECK(completed >= 3);
}

TEST_CASE("the time is frozen for the queue, and continues for the log") {
  Ticking server;
  server.scheduler.begin_tick();
  server.run_a_while();
  server.scheduler.freeze();
  const Time before = server.service.now();
  const Time first = server.scheduler.log_time();
  CHECK(run_until(server.loop, [&] { return server.scheduler.log_time() > first; }));
  CHECK(server.service.now() == before);
  CHECK(server.host.ticks > 0);
}

TEST_CASE("the slowest reader is closed when all replies together exceed their memory") {
  Ticking server;
  Settings settings;
  settings.output_memory = 64 * 1024;
  server.clients.set_limits(settings);
  server.service.set_limits({}, {.output_bytes = 10 << 20});
  const os::Socket first = server.connect();
  const os::Socket second = server.connect();
  std::string put = "put 0 0 60 30000\r\n" + std::string(30000, 'x') + "\r\n";
  write_all(first, put);
  REQUIRE(run_until(server.loop, [&] { return server.log.appended() == 1; }));
  server.commit();
  std::string peeks;
  for (int i = 0; i < 40; ++i) peeks += "peek 1\r\n";
  // Neither reads: replies that the kernel does not take are counted.
  for (int i = 0; i < 20 && server.clients.count() == 2; ++i) {
    write_all(first, peeks);
    server.run_a_while();
    write_all(second, peeks);
    server.run_a_while();
  }
  CHECK(server.clients.count() == 1);
  CHECK(server.service.counters().count_of(stats::Counter::client_output_memory) == 1);
}

}  // namespace tubed::server_test
