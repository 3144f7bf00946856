// Runs a minimal server on a listener of its own, which splits its replies at chosen places.
#include "client/connection.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/address.h"
#include "client/pipeline.h"
#include "client/times.h"
#include "os/descriptor.h"

namespace tubed::client {
namespace {

// Accepts one client, and runs its part of the conversation in a thread.
class Peer {
 public:
  explicit Peer(std::function<void(int descriptor)> converse)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.number(), 1) == 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    name_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this, converse = std::move(converse)] {
      const os::Descriptor client(::accept(listener_.number(), nullptr, nullptr));
      converse(client.number());
    });
  }
  ~Peer() { thread_.join(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }

  Connection connect() const {
    auto client = Connection::open({.addresses = {parse_address(name_).value()}});
    REQUIRE(client);
    return std::move(*client);
  }

 private:
  os::Descriptor listener_;
  std::string name_;
  std::thread thread_;
};

void send_text(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (done <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

// Waits for `lines` line ends. Returns false if the client has closed.
bool await_lines(int descriptor, std::size_t lines) {
  std::array<char, 65536> bytes;
  while (lines > 0) {
    // Leaves input after the line for the next call.
    const ssize_t there = ::recv(descriptor, bytes.data(), bytes.size(), MSG_PEEK);
    if (there <= 0) return false;
    const std::string_view seen(bytes.data(), static_cast<std::size_t>(there));
    const std::size_t end = seen.find('\n');
    const bool is_whole = end != std::string_view::npos;
    const std::size_t taken = is_whole ? end + 1 : seen.size();
    if (::recv(descriptor, bytes.data(), taken, 0) != static_cast<ssize_t>(taken)) return false;
    if (is_whole) --lines;
  }
  return true;
}

constexpr std::string_view kStream =
    "INSERTED 18446744073709551615\r\nFOUND 7 4\r\n\r\n\r\n\r\nRESERVED 8 0\r\n\r\nNOT_FOUND\r\n"
    "OK 9\r\n---\na: 1\n\r\nUSING a b\r\n";

void check_stream(Connection& client) {
  const auto next = [&client] {
    auto answer = client.receive();
    REQUIRE(answer);
    return std::move(*answer);
  };
  const Reply inserted = next();
  CHECK(inserted.is("INSERTED"));
  CHECK(inserted.number() == UINT64_MAX);
  const Reply found = next();
  CHECK(found.line == "FOUND 7 4");
  CHECK(found.number() == 7);
  CHECK(found.body == "\r\n\r\n");
  const Reply reserved = next();
  CHECK(reserved.number() == 8);
  CHECK(reserved.body.empty());
  const Reply missing = next();
  CHECK(missing.word() == "NOT_FOUND");
  CHECK(missing.number() == 0);
  CHECK(next().body == "---\na: 1\n");
  const Reply used = next();
  CHECK(used.line == "USING a b");
  CHECK_FALSE(used.is("USIN"));
  CHECK(used.number() == 0);
}

}  // namespace

TEST_CASE("replies are the same complete, split at every byte, and byte by byte") {
  // In one conversation: each piece is sent when the client asks for it.
  Peer peer([](int descriptor) {
    for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
      send_text(descriptor, kStream.substr(0, cut));
      if (!await_lines(descriptor, 1)) return;
      send_text(descriptor, kStream.substr(cut));
      if (!await_lines(descriptor, 1)) return;
    }
    for (const char byte : kStream) send_text(descriptor, std::string_view(&byte, 1));
  });
  Connection client = peer.connect();
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    CAPTURE(cut);
    REQUIRE(client.send("next\n"));
    check_stream(client);
    REQUIRE(client.send("again\n"));
  }
  check_stream(client);
}

// A server refuses a client of a unix socket in this way: nothing reads the client's command.
TEST_CASE("a reply sent before the server closed is received, although a send fails") {
  const std::string path = fmt::format("/tmp/tubed-refusal-test-{}.sock", ::getpid());
  const os::Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  path.copy(local.sun_path, sizeof local.sun_path - 1);
  REQUIRE(::bind(listener.number(), reinterpret_cast<sockaddr*>(&local), sizeof local) == 0);
  REQUIRE(::listen(listener.number(), 1) == 0);
  auto client = Connection::open({.addresses = {parse_address(path).value()}});
  ::unlink(path.c_str());
  REQUIRE(client);
  {
    const os::Descriptor accepted(::accept(listener.number(), nullptr, nullptr));
    send_text(accepted.number(), "UNAUTHORIZED\r\n");
  }
  const auto reply = client->ask("stats");
  REQUIRE(reply);
  CHECK(reply->is("UNAUTHORIZED"));
  const auto next = client->ask("stats");
  REQUIRE_FALSE(next);
  CHECK(next.error().message.find("cannot send") == 0);
}

TEST_CASE("of several servers, the first that answers is used") {
  // A node of a cluster that refuses clients closes at once, or after it has waited for a leader.
  Peer closes([](int) {});
  Peer waits([](int descriptor) { await_lines(descriptor, 1); });
  Peer admits_nobody([](int descriptor) {
    await_lines(descriptor, 1);
    send_text(descriptor, "UNAUTHORIZED\r\n");
  });
  Peer serves([](int descriptor) {
    await_lines(descriptor, 1);
    send_text(descriptor, "USING default\r\n");
    await_lines(descriptor, 1);
    send_text(descriptor, "USING mine\r\n");
  });
  const std::string names =
      fmt::format("{},{},{}", closes.name(), waits.name(), admits_nobody.name());
  auto client = Connection::open(
      {.addresses =
           parse_addresses(fmt::format("127.0.0.1:1,{},{}", names, serves.name())).value()});
  REQUIRE(client);
  const auto reply = client->ask("use mine");
  REQUIRE(reply);
  CHECK(reply->line == "USING mine");
}

TEST_CASE("if no server answers, the error has the reason of each") {
  Peer closes([](int) {});
  Peer admits_nobody([](int descriptor) {
    await_lines(descriptor, 1);
    send_text(descriptor, "UNAUTHORIZED\r\n");
  });
  const auto client = Connection::open(
      {.addresses =
           parse_addresses(fmt::format("{},127.0.0.1:1,{}", closes.name(), admits_nobody.name()))
               .value()});
  REQUIRE_FALSE(client);
  const std::string& error = client.error().message;
  CHECK(error.starts_with("cannot connect to 127.0.0.1:1: Connection refused; " + closes.name()));
  CHECK(error.ends_with(admits_nobody.name() + ": the server answered \"UNAUTHORIZED\""));
  CHECK_FALSE(nothing_listens(client.error()));
  const auto nobody =
      Connection::open({.addresses = parse_addresses("127.0.0.1:1,127.0.0.1:2").value()});
  REQUIRE_FALSE(nobody);
  CHECK(nothing_listens(nobody.error()));
}

// A server listens there if systemd has passed the socket on.
TEST_CASE("an abstract socket is connected to by its name") {
  const std::string name = fmt::format("tubed-abstract-test-{}", ::getpid());
  const os::Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  name.copy(local.sun_path + 1, sizeof local.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::bind(listener.number(), reinterpret_cast<sockaddr*>(&local), size) == 0);
  CHECK_FALSE(Connection::open({.addresses = {parse_address("unix:@" + name).value()}}));
  REQUIRE(::listen(listener.number(), 1) == 0);
  CHECK(Connection::open({.addresses = {parse_address("unix:@" + name).value()}}));
}

// Other threads block the signal, so only the waiting thread gets it.
TEST_CASE("a signal does not end the wait for a connection") {
  static std::atomic<int> signals;
  struct sigaction note {};
  note.sa_handler = [](int) { ++signals; };
  sigaction(SIGALRM, &note, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);

  const std::string path = fmt::format("/tmp/tubed-connection-test-{}.sock", ::getpid());
  const os::Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  path.copy(local.sun_path, sizeof local.sun_path - 1);
  REQUIRE(::bind(listener.number(), reinterpret_cast<sockaddr*>(&local), sizeof local) == 0);
  REQUIRE(::listen(listener.number(), 0) == 0);
  const Address address = parse_address(path).value();
  const auto first = Connection::open({.addresses = {address}});
  REQUIRE(first);

  // The backlog of the listener is full.
  Result<Connection> second = Error{"not yet"};
  std::atomic<bool> returned = false;
  std::thread connecting([&] {
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    second = Connection::open({.addresses = {address}});
    ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    returned = true;
  });
  const itimerval often{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  while (signals < 20 && !returned) std::this_thread::yield();
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  const os::Descriptor accepted(::accept(listener.number(), nullptr, nullptr));
  connecting.join();
  ::unlink(path.c_str());
  CHECK(second);
}

TEST_CASE("take() does not wait, and returns no partial reply") {
  Peer peer([](int descriptor) {
    send_text(descriptor, "FOUND 1 5\r\nhel");
    if (await_lines(descriptor, 1)) send_text(descriptor, "lo\r\nDELETED\r\n");
    await_lines(descriptor, 1);
  });
  Connection client = peer.connect();
  auto taken = client.take();
  REQUIRE(taken);
  CHECK_FALSE(taken->has_value());
  REQUIRE(client.send("go on\n"));
  CHECK(client.receive()->body == "hello");
  CHECK(client.receive()->line == "DELETED");
  taken = client.take();
  REQUIRE(taken);
  CHECK_FALSE(taken->has_value());
}

TEST_CASE("a server that does not speak beanstalk is an error") {
  for (const std::string& text :
       {std::string(2000, 'x'), std::string("OK\r\n"), std::string("FOUND 1 x\r\n"),
        std::string("RESERVED 1 99999999999999999999\r\n"), std::string("FOUND 1 2\r\nabcd\r\n"),
        std::string("USING \x1b]0;title\a\r\n")}) {
    CAPTURE(text);
    Peer peer([&text](int descriptor) {
      send_text(descriptor, text);
      await_lines(descriptor, 1);
    });
    Connection client = peer.connect();
    const auto answer = client.receive();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().message.find("beanstalk") != std::string::npos);
  }
}

TEST_CASE("a server that closes or is silent is an error") {
  Peer gone([](int descriptor) { send_text(descriptor, "FOUND 1 5\r\nhel"); });
  Connection client = gone.connect();
  CHECK(client.receive().error().message == "the server closed a connection");

  Peer silent([](int descriptor) { await_lines(descriptor, 1); });
  Connection patient = silent.connect();
  CHECK(patient.receive(std::chrono::milliseconds(1)).error().message ==
        "the server was silent for 0.001 s");
  patient.set_deadline(std::chrono::steady_clock::now());
  CHECK(patient.receive(Duration::max()).error().message == "the server was silent for 0 s");
}

TEST_CASE("the reply to set-caps is a line without a body") {
  Peer peer([](int descriptor) {
    send_text(descriptor, "OK\r\nOK 1\r\nx\r\n");
    await_lines(descriptor, 2);
  });
  Connection client = peer.connect();
  CHECK(client.ask_for_caps(256).value().is("OK"));
  CHECK(client.ask("stats").value().body == "x");
}

TEST_CASE("a put consists of its line and its body") {
  std::string commands = "use a\r\n";
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  append_put({.priority = 1, .delay = seconds(2), .ttr = seconds(3), .body = "x\r\ny"}, commands);
  append_put({.priority = 4, .delay = seconds(0), .ttr = milliseconds(6000), .body = ""}, commands);
  CHECK(commands == "use a\r\nput 1 2 3 4\r\nx\r\ny\r\nput 4 0 6 0\r\n\r\n");
}

TEST_CASE("only a time with a fraction of a second is sent in milliseconds") {
  std::string commands;
  append_put({.priority = 1,
              .delay = std::chrono::milliseconds(1),
              .ttr = std::chrono::milliseconds(60'001),
              .body = "x"},
             commands);
  CHECK(commands == "put 1 1ms 60001ms 1\r\nx\r\n");
  CHECK(time_argument(std::chrono::seconds(UINT32_MAX)) == "4294967295");
  CHECK_FALSE(has_milliseconds(std::chrono::seconds(UINT32_MAX)));
}

TEST_CASE("pipelining: each reply reaches its command, and no more are in flight than allowed" *
          doctest::test_suite("slow")) {
  constexpr std::size_t kCommands = 10'000;
  Peer peer([](int descriptor) {
    for (std::size_t i = 0; i < kCommands && await_lines(descriptor, 1); ++i) {
      send_text(descriptor, fmt::format("INSERTED {}\r\n", i));
    }
  });
  Connection client = peer.connect();
  std::size_t asked = 0;
  std::size_t answered = 0;
  std::size_t most = 0;
  const auto done = ask_each(
      client, kCommands,
      [&](std::size_t i, std::string& commands) {
        REQUIRE(i == asked++);
        most = std::max(most, asked - answered);
        commands += "anything\r\n";
      },
      [&](std::size_t i, Reply&& answer) {
        REQUIRE(i == answered++);
        REQUIRE(answer.number() == i);
      });
  REQUIRE(done);
  CHECK(answered == kCommands);
  CHECK(most <= kCommandsInFlight);
  CHECK(most > kCommandsInFlight / 2);
}

TEST_CASE("pipelining: large commands and large replies do not block each other") {
  constexpr std::size_t kCommands = 100;
  const std::string large(200'000, 'x');
  Peer peer([&large](int descriptor) {
    // The peer answers each command before it reads the next, and never more than were sent.
    for (std::size_t i = 0; i < kCommands && await_lines(descriptor, 1); ++i) {
      send_text(descriptor, fmt::format("FOUND {} {}\r\n{}\r\n", i, large.size(), large));
    }
  });
  Connection client = peer.connect();
  std::size_t bytes = 0;
  REQUIRE(ask_each(
      client, kCommands, [&](std::size_t, std::string& commands) { commands += large + "\n"; },
      [&](std::size_t, const Reply& answer) { bytes += answer.body.size(); }));
  CHECK(bytes == kCommands * large.size());
}

TEST_CASE("pipelining: no commands, an error of the caller, and a server that closes") {
  Peer peer([](int descriptor) {
    if (await_lines(descriptor, 2)) send_text(descriptor, "DELETED\r\nDELETED\r\n");
    await_lines(descriptor, 1);
  });
  Connection client = peer.connect();
  CHECK(ask_each(
      client, 0, [](std::size_t, std::string&) { FAIL("asked"); },
      [](std::size_t, const Reply&) { FAIL("answered"); }));
  int commands_left = 2;
  const auto make = [&](std::string& commands) {
    if (commands_left == 0) return false;
    --commands_left;
    commands += "delete 1\r\n";
    return true;
  };
  int taken = 0;
  const auto stopped = pipelined(client, make, [&](const Reply&) -> Result<void> {
    ++taken;
    return Error{"enough"};
  });
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().message == "enough");
  CHECK(taken == 1);

  Peer short_lived([](int descriptor) { await_lines(descriptor, 1); });
  Connection left_alone = short_lived.connect();
  CHECK_FALSE(ask_each(
      left_alone, 10, [](std::size_t, std::string& commands) { commands += "delete 1\r\n"; },
      [](std::size_t, const Reply&) { FAIL("answered"); }));
}

}  // namespace tubed::client
