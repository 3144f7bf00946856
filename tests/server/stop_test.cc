// The end of a server that is asked to stop twice.
#include <csignal>

#include <doctest/doctest.h>

#include "server/server.h"
#include "tests/loop/loopback.h"

using namespace tubed;
using namespace tubed::loop_test;

TEST_CASE("a signal after the last client was closed does not crash a server without a journal") {
  struct Watcher {
    loop::Handle<uv_prepare_t> prepare{this};
    os::Socket client;
    int ticks = 0;
    bool signalled_again = false;

    explicit Watcher(loop::Loop& loop) {
      uv_prepare_init(loop.uv(), prepare.get());
      // libuv calls the handle that was started first last: after the end of the server's tick and
      // before its events.
      uv_prepare_start(prepare.get(), [](uv_prepare_t* handle) {
        loop::owner_of<Watcher>(handle).before_events();
      });
    }
    void before_events() {
      if (++ticks == 1) return;  // the event of this iteration is the connection
      if (ticks == 2) std::raise(SIGTERM);
      if (signalled_again) return;
      // The end of the stream: the server has closed its last client in the tick that has just
      // ended.
      char bytes[100];
      const auto transfer = os::read_into(client, bytes);
      if (transfer.kind == os::Transfer::Kind::end) signalled_again = std::raise(SIGTERM) == 0;
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
  REQUIRE(server.load_access().ok());
  REQUIRE(server.listen({}).ok());
  // The client sends nothing, so that a timer closes it, and not the tick of the signal.
  watcher.client = connect_to("unix:" + directory.file("socket"));
  CHECK(server.run() == 0);
  CHECK(watcher.signalled_again);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.back().find("stopped") != std::string::npos);
}
