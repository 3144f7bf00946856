// How a server drains: what it answers meanwhile, and how it ends.
#include "server/lifecycle.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "loop/signal.h"
#include "os/exit_codes.h"
#include "server/drain.h"
#include "server/status.h"
#include "tests/loop/loopback.h"

namespace tubed::server_test {

using loop_test::read_some;
using loop_test::run_until;
using loop_test::write_all;
using server::Phase;

namespace {

// A server without listeners; its clients are socket pairs.
struct DrainingServer : serving::TickHost, server::ConnectionHost, http::AdminHttpHost {
  explicit DrainingServer(DrainExit exit, DrainReserves reserves = DrainReserves::refuse) {
    loop::ignore_broken_pipes();
    settings.drain_exit = exit;
    settings.drain_reserves = reserves;
    settings.shutdown_timeout = std::chrono::hours(1);
    clients.set_limits(settings);
  }
  virtual ~DrainingServer() { clients.close_all("test"); }

  bool complete_tick() override { return lifecycle.complete_tick(); }
  void tick_ended() override {}
  server::Admittance admits_connection() override { return server::Admittance::full; }
  void on_connection(std::unique_ptr<loop::Channel>, const serving::ConnectionOrigin&) override {}
  void on_handshake_failed(const std::string&, std::string_view) override {}
  void on_header_failed(const std::string&, std::string_view) override {}
  void on_not_a_proxy(const std::string&) override {}
  void on_accept_error(const std::string&, std::uint64_t) override {}
  void begin_tick() override { scheduler.begin_tick(); }
  std::string_view unready() const override { return ""; }
  std::string_view not_leader() const override { return ""; }

  // A connected client; returns the other end.
  os::Socket connect() {
    auto [here, there] = loop_test::connected_pair();
    scheduler.begin_tick();
    scheduler.mark_dirty(clients.add(loop::open_channel(loop, std::move(here), {}), scheduler));
    return std::move(there);
  }
  // The answers to these commands: as many bytes as `expected` has.
  std::string ask(const os::Socket& client, std::string_view commands, std::string_view expected) {
    write_all(client, commands);
    return answers(client, expected);
  }
  std::string answers(const os::Socket& client, std::string_view expected) {
    std::string received;
    CHECK(
        run_until(loop, [&] { return (received += read_some(client)).size() >= expected.size(); }));
    return received;
  }
  bool ends() {
    return run_until(loop, [&] { return lifecycle.phase() == Phase::closed; });
  }
  // Lines of the log with this text.
  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }
  std::string status() const { return status_line(service, lifecycle, clients.count()); }

  loop::Loop loop;
  std::vector<std::string> lines;
  os::Log log{[this](std::string_view line) {
                lines.emplace_back(line);
                return true;
              },
              [] { return Duration(); }};
  Settings settings;
  commands::Service service{Limits{}, stats::ProcessIdentity{}, {[] { return stats::CpuTimes{}; }}};
  serving::Clients clients{log, service};
  serving::Scheduler scheduler{loop, service, clients, *this};
  http::AdminHttp http{loop, log, service, *this};
  server::Listeners listeners{loop, log, *this, http};
  server::ServiceNotifier notifier{loop, [] { return std::string(); }};
  server::Lifecycle lifecycle{loop,    log,       service,   settings,
                              clients, scheduler, listeners, notifier};
};

constexpr std::string_view kPuts = "put 0 0 60 1\r\na\r\nput 0 0 60 1\r\nb\r\n";
constexpr std::string_view kInserted = "INSERTED 1\r\nINSERTED 2\r\n";
constexpr std::string_view kReserved = "RESERVED 1 1\r\na\r\n";

// A server with a backlog, a worker that holds job 1, and another worker that waits.
struct Backlog final : DrainingServer {
  explicit Backlog(DrainExit exit, DrainReserves reserves = DrainReserves::refuse)
      : DrainingServer(exit, reserves) {
    CHECK(ask(busy, kPuts, kInserted) == kInserted);
    CHECK(ask(busy, "reserve\r\n", kReserved) == kReserved);
  }
  // The other worker waits for a job of tube t.
  void wait_for_a_job() {
    const std::string_view watching = "WATCHING 2\r\nWATCHING 1\r\n";
    CHECK(ask(waiting, "watch t\r\nignore default\r\n", watching) == watching);
    write_all(waiting, "reserve\r\n");
    CHECK(run_until(loop, [&] { return service.engine().info().waiting == 1; }));
  }

  os::Socket busy = connect();
  os::Socket waiting = connect();
};

}  // namespace

TEST_CASE("a server that drains until it is idle gives out no jobs, and ends with the last held") {
  Backlog server(DrainExit::when_idle);
  server.wait_for_a_job();
  server.lifecycle.drain(true);
  const std::string_view refused =
      "TIMED_OUT\r\nNOT_FOUND\r\nRESERVED_BATCH 0\r\nRESERVED_BATCH 0\r\nMOVED\r\nTIMED_OUT\r\n"
      "TOUCHED\r\n";
  REQUIRE(server.ask(server.busy,
                     "reserve-with-timeout 0\r\nreserve-job 2\r\nreserve-batch 5\r\n"
                     "reserve-batch 5 0\r\nmove-job 2 t\r\nreserve-with-timeout 1\r\ntouch 1\r\n",
                     refused) == refused);
  CHECK(server.lifecycle.phase() == Phase::serving);
  CHECK(server.status() == "draining: 1 ready jobs, 1 reserved, 2 connections");
  CHECK(server.ask(server.busy, "delete 1\r\n", "DELETED\r\n") == "DELETED\r\n");
  REQUIRE(server.ends());
  CHECK(loop_test::read_to_end(server.waiting).empty());
  CHECK(server.lifecycle.exit_code() == 0);
  CHECK(server.count(" drained") == 1);
  CHECK(server.status() == "drained: 1 ready jobs, 0 delayed, 0 buried are lost");
}

TEST_CASE("the end of drain mode gives out jobs again") {
  Backlog server(DrainExit::when_idle);
  server.wait_for_a_job();
  server.lifecycle.drain(true);
  CHECK(server.ask(server.busy, "move-job 2 t\r\n", "MOVED\r\n") == "MOVED\r\n");
  CHECK(read_some(server.waiting).empty());
  server.lifecycle.drain(false);
  CHECK(server.answers(server.waiting, "RESERVED 2 1\r\nb\r\n") == "RESERVED 2 1\r\nb\r\n");
  CHECK(server.lifecycle.phase() == Phase::serving);
}

TEST_CASE("a server that drains in another way gives out jobs") {
  const auto gives = [](DrainExit exit, DrainReserves reserves) {
    Backlog server(exit, reserves);
    server.lifecycle.drain(true);
    const std::string_view given = "RESERVED 2 1\r\nb\r\n";
    return server.ask(server.busy, "reserve\r\n", given) == given;
  };
  CHECK(gives(DrainExit::never, DrainReserves::refuse));
  CHECK(gives(DrainExit::when_empty, DrainReserves::refuse));
  CHECK(gives(DrainExit::when_idle, DrainReserves::serve));
}

TEST_CASE("a reload changes whether a server that drains gives out jobs") {
  Backlog server(DrainExit::never);
  server.lifecycle.drain(true);
  server.settings.drain_exit = DrainExit::when_idle;
  server.lifecycle.drain_settings_changed();
  CHECK(server.ask(server.busy, "reserve-with-timeout 0\r\n", "TIMED_OUT\r\n") == "TIMED_OUT\r\n");
  server.settings.drain_reserves = DrainReserves::serve;
  server.lifecycle.drain_settings_changed();
  CHECK(server.ask(server.busy, "reserve-job 2\r\n", "RESERVED 2 1\r\nb\r\n") ==
        "RESERVED 2 1\r\nb\r\n");
}

TEST_CASE("drain.timeout interrupts the reserved jobs, and ends with an exit code of its own") {
  Backlog server(DrainExit::when_idle);
  server.settings.drain_timeout = std::chrono::milliseconds(1);
  server.lifecycle.drain(true);
  REQUIRE(server.ends());
  CHECK(server.lifecycle.exit_code() == os::kExitDrainTimedOut);
  CHECK_FALSE(server.lifecycle.drained());
  CHECK(server.count("drain.timeout is over interrupted=1 ") == 1);
  CHECK(server.status() ==
        "drain.timeout is over, 1 jobs interrupted: 2 ready jobs, 0 delayed, 0 buried are lost");
}

TEST_CASE("the last status shows how a server that drains has ended, but for 2.0.0") {
  using server::drain_result_of;
  using server::DrainResult;
  const auto last_status = [](const auto& end) {
    Backlog server(DrainExit::when_idle);
    server.lifecycle.drain(true);
    end(server);
    REQUIRE(server.ends());
    return server.status();
  };
  const auto stopped = last_status([](Backlog& server) { server.lifecycle.stop_requested(); });
  CHECK(stopped == "stopped: 2 ready jobs, 0 reserved, 0 connections");
  CHECK(drain_result_of(stopped) == DrainResult::stopped);
  CHECK(drain_result_of("") == DrainResult::stopped);
  CHECK(drain_result_of("draining: 2 ready jobs, 0 reserved, 1 connections") ==
        DrainResult::stopped);
  const auto drained =
      last_status([](Backlog& server) { write_all(server.busy, "release 1 0 0\r\n"); });
  CHECK(drain_result_of(drained) == DrainResult::drained);
  CHECK(drain_result_of(last_status([](Backlog& server) {
          server.settings.drain_timeout = std::chrono::milliseconds(1);
          server.lifecycle.drain_settings_changed();
        })) == DrainResult::timed_out);
  // As 2.0.0 ends, with or without a drain.
  CHECK(drain_result_of("stopping: 2 ready jobs, 0 reserved, 0 connections") ==
        DrainResult::unknown);
}

TEST_CASE("a client that has asked for it learns that the server has drained") {
  const auto last_words = [](const auto& end) {
    Backlog server(DrainExit::when_idle);
    const os::Socket observer = server.connect();
    CHECK(server.ask(observer, "set-caps 256\r\n", "OK\r\n") == "OK\r\n");
    end(server);
    REQUIRE(server.ends());
    CHECK(loop_test::read_to_end(server.waiting).empty());
    return loop_test::read_to_end(observer);
  };
  CHECK(last_words([](Backlog& server) {
          server.lifecycle.drain(true);
          write_all(server.busy, "release 1 0 0\r\n");
        }) == "DRAINED\r\n");
  CHECK(last_words([](Backlog& server) {
          server.settings.drain_timeout = std::chrono::milliseconds(1);
          server.lifecycle.drain(true);
        }).empty());
  CHECK(last_words([](Backlog& server) {
          server.lifecycle.drain(true);
          server.lifecycle.stop_requested();
        }).empty());
}

// As slowly as its client reads, and so still at the end of the server.
TEST_CASE(
    "a list of tubes that is being written is not interrupted by the word that ends a drain") {
  DrainingServer server(DrainExit::when_idle);
  const os::Socket observer = server.connect();
  CHECK(server.ask(observer, "set-caps 256\r\n", "OK\r\n") == "OK\r\n");
  const os::Socket client = server.connect();
  std::string puts;
  for (int i = 0; i < 6000; ++i) puts += fmt::format("put-in-tube {:0>190} 0 0 60 1\r\nx\r\n", i);
  std::string answers;
  std::size_t sent = 0;
  CHECK(run_until(server.loop, [&] {
    sent += os::write_from(client, std::string_view(puts).substr(sent)).bytes;
    answers += read_some(client);
    return answers.ends_with("INSERTED 6000\r\n");
  }));
  write_all(observer, "list-tubes\r\n");
  std::string list;
  CHECK(run_until(server.loop, [&] { return !(list += read_some(observer)).empty(); }));
  server.lifecycle.drain(true);
  CHECK(run_until(server.loop, [&] { return server.lifecycle.phase() != Phase::serving; }));
  CHECK(run_until(server.loop, [&] {
    list += read_some(observer);
    return server.lifecycle.phase() == Phase::closed;
  }));
  list += loop_test::read_to_end(observer);
  const std::size_t header = list.find("\r\n");
  const std::size_t bytes = std::stoull(list.substr(3, header - 3));
  REQUIRE(list.size() >= header + 4 + bytes);
  CHECK(list.substr(header + 4 + bytes) == "DRAINED\r\n");
}

TEST_CASE("a node that was removed from its cluster ends with an exit code of its own") {
  Backlog server(DrainExit::never);
  server.lifecycle.stop_removed();
  REQUIRE(server.ends());
  CHECK(server.lifecycle.exit_code() == os::kExitRemoved);
}

TEST_CASE("the report of its removal does not hurry a server that stops") {
  Backlog server(DrainExit::never);
  server.lifecycle.stop_requested();
  server.lifecycle.stop_removed();
  REQUIRE(server.ends());
  CHECK(server.lifecycle.exit_code() == 0);
  CHECK(server.count("stopped with connections open") == 0);
}

TEST_CASE("a server without a journal says at its end how many jobs are lost") {
  const auto lines = [](std::string_view commands, std::string_view answers, bool has_journal) {
    DrainingServer server(DrainExit::never);
    if (has_journal) server.settings.journal_directory = "a";
    const os::Socket client = server.connect();
    CHECK(server.ask(client, commands, answers) == answers);
    server.lifecycle.stop_requested();
    REQUIRE(server.ends());
    return std::pair(server.count(" jobs are lost "), server.count(" jobs are lost jobs=2 "));
  };
  const std::pair<std::size_t, std::size_t> none;
  const std::string all = std::string(kPuts) + "reserve\r\n";
  const std::string answers = std::string(kInserted) + std::string(kReserved);
  CHECK(lines(all, answers, false) == std::pair<std::size_t, std::size_t>(1, 1));
  CHECK(lines(all, answers, true) == none);
  CHECK(lines("list-tube-used\r\n", "USING default\r\n", false) == none);
}

TEST_CASE("a server waits for what is written after its log, and then ends") {
  Backlog server(DrainExit::never);
  std::function<void()> done;
  server.lifecycle.on_closed([&](std::function<void()> end) { done = std::move(end); });
  server.lifecycle.stop_requested();
  REQUIRE(server.ends());
  REQUIRE(done);
  CHECK(server.clients.count() == 0);
  done();
  server.loop.run();  // ends at once
  server.lifecycle.stop_requested();
  CHECK(server.lifecycle.phase() == Phase::closed);
  CHECK(server.lifecycle.exit_code() == 0);
}

TEST_CASE("a drained leader that passes its leadership on first logs once that it has drained") {
  DrainingServer server(DrainExit::when_idle);
  const os::Socket client = server.connect();
  std::function<void()> stop;
  server.lifecycle.on_hand_over([&](std::function<void()> done) {
    stop = std::move(done);
    return true;
  });
  server.lifecycle.drain(true);
  CHECK(server.ask(client, "list-tube-used\r\n", "USING default\r\n") == "USING default\r\n");
  REQUIRE(stop);
  CHECK(server.lifecycle.phase() == Phase::serving);
  // It is too late to end drain mode: the server stops whatever a signal or a command says.
  server.lifecycle.drain(false);
  CHECK(server.service.draining());
  CHECK(server.count(" not draining") == 0);
  stop();
  REQUIRE(server.ends());
  CHECK(server.count(" drained") == 1);
}

}  // namespace tubed::server_test
