// The end of a server: a second signal, and requests over HTTP that arrive while it stops.
#include <array>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "server/server.h"
#include "tests/loop/loopback.h"

using namespace tubed;
using namespace tubed::loop_test;

namespace {

// A directory, and the surroundings of a server that listens on a unix socket in it.
struct Place {
  Place() {
    settings.listeners.front().kind = Listen::Kind::unix_socket;
    settings.listeners.front().path = directory.file("socket");
  }
  std::function<Result<Settings>()> reload() {
    return [this] { return Result<Settings>(settings); };
  }

  const Directory directory;
  std::vector<std::string> lines;  // of the log
  os::Log log{[this](std::string_view line) {
                lines.emplace_back(line);
                return true;
              },
              [] { return Duration(); }};
  loop::Loop loop;
  Settings settings;
};

}  // namespace

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

  Place place;
  Watcher watcher(place.loop);
  server::Server server(place.loop, place.log, place.settings, place.reload());
  REQUIRE(server.load_access().ok());
  REQUIRE(server.listen({}).ok());
  // The client sends nothing: a timer closes it, and not the tick of the signal.
  watcher.client = connect_to("unix:" + place.directory.file("socket"));
  CHECK(server.run() == 0);
  CHECK(watcher.signalled_again);
  REQUIRE_FALSE(place.lines.empty());
  CHECK(place.lines.back().find("stopped") != std::string::npos);
}

namespace {

// Occupies the threads of libuv's pool (4 by default): no operation on a file begins before
// release().
class BusyThreads {
 public:
  explicit BusyThreads(loop::Loop& loop) {
    for (uv_work_t& work : works_) {
      work.data = this;
      uv_queue_work(
          loop.uv(), &work, [](uv_work_t* one) { static_cast<BusyThreads*>(one->data)->wait(); },
          [](uv_work_t*, int) {});
    }
  }

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  std::array<uv_work_t, 4> works_{};
};

// A request over HTTP whose response is read without waiting.
struct HttpPeer {
  os::Socket socket;
  std::string answer = {};
  bool ended = false;

  void read() {
    char bytes[4096];
    const auto transfer = os::read_into(socket, bytes);
    if (transfer.kind == os::Transfer::Kind::done) answer.append(bytes, transfer.bytes);
    ended = ended || transfer.kind == os::Transfer::Kind::end;
  }
};

constexpr std::string_view kPut =
    "POST /api/v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\nX-Requested-By: test\r\n"
    "Content-Length: 1\r\n\r\nx";
constexpr std::string_view kKick =
    "POST /api/v1/tubes/t/kick HTTP/1.1\r\nHost: localhost\r\nX-Requested-By: test\r\n"
    "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n";
constexpr std::string_view kKickBody = "{\"bound\":10}";

// Two requests to a server that stops: while its journal is closed, one request begins, and the
// body of the other arrives.
struct LateRequests {
  enum class Step : std::uint8_t { begin, kick_begins, stop_begins, answers, end };

  LateRequests(loop::Loop& of, std::string http, const std::vector<std::string>& log)
      : loop(of), path(std::move(http)), lines(log) {
    uv_prepare_init(loop.uv(), prepare.get());
    uv_prepare_start(prepare.get(), [](uv_prepare_t* handle) {
      loop::owner_of<LateRequests>(handle).before_events();
    });
    // The loop does not wait for events.
    uv_idle_init(loop.uv(), idle.get());
    uv_idle_start(idle.get(), [](uv_idle_t*) {});
  }

  void before_events() {
    if (step != Step::begin) {
      put.read();
      kick.read();
    }
    switch (step) {
      case Step::begin:
        put.socket = connect_to(path);
        kick.socket = connect_to(path);
        write_all(kick.socket, kKick);
        step = Step::kick_begins;
        return;
      case Step::kick_begins:
        if (kick.answer.find("100 Continue") == std::string::npos) return;
        busy.emplace(loop);
        std::raise(SIGTERM);
        step = Step::stop_begins;
        return;
      case Step::stop_begins:
        if (lines.back().find("stopping") == std::string::npos) return;
        write_all(put.socket, kPut);
        write_all(kick.socket, kKickBody);
        step = Step::answers;
        return;
      case Step::answers:
        if (!put.ended || !kick.ended) return;
        busy->release();
        uv_idle_stop(idle.get());
        step = Step::end;
        return;
      case Step::end:
        return;
    }
  }

  loop::Loop& loop;
  std::string path;
  const std::vector<std::string>& lines;
  loop::Handle<uv_prepare_t> prepare{this};
  loop::Handle<uv_idle_t> idle{this};
  std::optional<BusyThreads> busy;
  HttpPeer put;
  HttpPeer kick;
  Step step = Step::begin;
};

}  // namespace

TEST_CASE("requests over HTTP that arrive while the journal is closed are refused") {
  Place place;
  Settings& settings = place.settings;
  settings.journal_directory = place.directory.file("");
  settings.http_listen.emplace();
  settings.http_listen->kind = Listen::Kind::unix_socket;
  settings.http_listen->path = place.directory.file("http");
  settings.http.api = HttpApiLevel::full;
  LateRequests requests(place.loop, "unix:" + settings.http_listen->path, place.lines);
  server::Server server(place.loop, place.log, settings, place.reload());
  REQUIRE(server.load_access().ok());
  REQUIRE(server.listen({}).ok());
  REQUIRE(server.recover().ok());
  CHECK(server.run() == 0);
  for (const HttpPeer* peer : {&requests.put, &requests.kick}) {
    CAPTURE(peer->answer);
    CHECK(peer->answer.find("HTTP/1.1 503 ") != std::string::npos);
    CHECK(peer->answer.find("urn:tubed:problem:stopping") != std::string::npos);
    CHECK(peer->answer.find("\r\nRetry-After: 1\r\n") != std::string::npos);
    CHECK(peer->answer.find("\r\nConnection: close\r\n") != std::string::npos);
  }
  CHECK(place.lines.back().find("stopped") != std::string::npos);
}
