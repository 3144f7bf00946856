// The end of a server that is asked to stop more than once.
#include <csignal>

#include <doctest/doctest.h>

#include "server/server.h"
#include "tests/loop/loopback.h"

using namespace tubed;
using namespace tubed::loop_test;

TEST_CASE("a signal after the last client of a server without a journal has gone is no crash") {
  struct Watcher {
    loop::Handle<uv_prepare_t> prepare{this};
    os::Socket client;
    int turns = 0;
    bool asked_again = false;

    explicit Watcher(loop::Loop& loop) {
      uv_prepare_init(loop.uv(), prepare.get());
      // Started first, it is called last: behind the end of the server's turn, before its events.
      uv_prepare_start(prepare.get(), [](uv_prepare_t* handle) {
        loop::owner_of<Watcher>(handle).before_events();
      });
    }
    void before_events() {
      if (++turns == 1) return;  // the events of this turn are the connection
      if (turns == 2) std::raise(SIGTERM);
      if (asked_again) return;
      // The end of the stream: the server has closed its last client in the turn that has just
      // ended.
      char bytes[100];
      const auto transfer = os::read_into(client, bytes);
      if (transfer.kind == os::Transfer::Kind::end) asked_again = std::raise(SIGTERM) == 0;
    }
  };

  const Directory directory;
  std::vector<std::string> lines;
  os::Log log(
      [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      },
      [] { return Duration(); });
  loop::Loop loop;
  Watcher watcher(loop);
  Settings settings;
  settings.listeners.front().kind = Listen::Kind::unix_socket;
  settings.listeners.front().path = directory.file("socket");
  server::Server server(loop, log, settings, [&] { return Result<Settings>(settings); });
  REQUIRE(server.listen({}).ok());
  // It stays silent, so that a timer ends its connection, and not the signal's own turn.
  watcher.client = connect_to("unix:" + directory.file("socket"));
  CHECK(server.run());
  CHECK(watcher.asked_again);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.back().find("stopped") != std::string::npos);
}
