#include "node/byte_pipe.h"

#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "loop/signal.h"
#include "tests/server/peer_frames.h"

namespace tubed::server_test {

using node::BytePipe;

namespace {

// A pipe between two sockets, whose other ends the test has.
struct Pipe {
  explicit Pipe(loop::Loop& its_loop, Duration stall = std::chrono::hours(1),
                std::string from_server = {})
      : loop(its_loop) {
    loop::ignore_broken_pipes();
    auto [client_end, client_here] = loop_test::connected_pair();
    auto [server_end, server_here] = loop_test::connected_pair();
    client.socket = std::move(client_here);
    server.socket = std::move(server_here);
    pipe.emplace(loop, loop::open_channel(loop, std::move(client_end), {}),
                 loop::open_channel(loop, std::move(server_end), {}), std::move(from_server), stall,
                 [this](BytePipe::End how) { end = how; });
  }

  bool arrives(RawPeer& peer, std::string_view bytes) {
    const bool arrived = loop_test::run_until(loop, [&] {
      peer.read();
      return peer.input.size() >= bytes.size() || peer.ended;
    });
    return arrived && std::exchange(peer.input, "") == bytes;
  }
  bool ends(RawPeer& peer) {
    return loop_test::run_until(loop, [&] {
      peer.read();
      return peer.ended;
    });
  }
  bool has_ended(BytePipe::End how) {
    return loop_test::run_until(loop, [&] { return end.has_value(); }) && *end == how;
  }

  loop::Loop& loop;
  RawPeer client{.loop = loop, .socket = {}};
  RawPeer server{.loop = loop, .socket = {}};
  std::optional<BytePipe::End> end;
  std::optional<BytePipe> pipe;
};

}  // namespace

TEST_CASE("a pipe carries bytes in both directions") {
  loop::Loop loop;
  Pipe pipe(loop);
  for (int round = 0; round < 3; ++round) {
    pipe.client.send("reserve\r\n");
    CHECK(pipe.arrives(pipe.server, "reserve\r\n"));
    pipe.server.send("RESERVED 1 1\r\nx\r\n");
    CHECK(pipe.arrives(pipe.client, "RESERVED 1 1\r\nx\r\n"));
  }
  CHECK_FALSE(pipe.end);
}

TEST_CASE("the end of one direction leaves the other open") {
  loop::Loop loop;
  Pipe pipe(loop);
  pipe.client.send("quit");
  loop_test::half_close(pipe.client.socket);
  CHECK(pipe.ends(pipe.server));
  CHECK(pipe.server.input == "quit");
  pipe.server.send("last words");
  CHECK(pipe.arrives(pipe.client, "last words"));
  CHECK_FALSE(pipe.end);
  loop_test::half_close(pipe.server.socket);
  CHECK(pipe.ends(pipe.client));
  CHECK(pipe.has_ended(BytePipe::End::complete));
}

TEST_CASE("a server that ends the connection ends the client's, which is given up whole") {
  loop::Loop loop;
  Pipe pipe(loop);
  pipe.server.send("OUT_OF_MEMORY\r\n");
  pipe.server.socket = os::Socket();
  CHECK(pipe.ends(pipe.client));
  CHECK(pipe.client.input == "OUT_OF_MEMORY\r\n");
  CHECK(pipe.has_ended(BytePipe::End::complete));
  auto channel = pipe.pipe->release_client();
  REQUIRE(channel != nullptr);
  pipe.pipe.reset();
  // The connection is still there: a write of the client has no error.
  pipe.client.send("more");
}

TEST_CASE("the end of input by the node is passed on after the bytes before it") {
  loop::Loop loop;
  Pipe pipe(loop);
  pipe.client.send("first");
  CHECK(pipe.arrives(pipe.server, "first"));
  pipe.pipe->end_input();
  pipe.client.send("second");
  CHECK(pipe.ends(pipe.server));
  CHECK(pipe.server.input.empty());
  pipe.server.send("reply");
  CHECK(pipe.arrives(pipe.client, "reply"));
}

TEST_CASE("a slow reader slows its sender down, and every byte arrives") {
  loop::Loop loop;
  Pipe pipe(loop);
  std::string sent;
  // Until the sender is held back: the kernel's buffers and the pipe are full.
  for (int idle = 0; idle < 100; ++idle) {
    const std::string bytes(20000, static_cast<char>('a' + idle % 26));
    const auto transfer = os::write_from(pipe.server.socket, bytes);
    if (transfer.kind == os::Transfer::Kind::done) {
      sent.append(bytes, 0, transfer.bytes);
      idle = 0;
    }
    loop_test::run_ticks(loop);
    REQUIRE(sent.size() < (64U << 20));
  }
  CHECK(pipe.arrives(pipe.client, sent));
  pipe.server.send("end");
  CHECK(pipe.arrives(pipe.client, "end"));
}

TEST_CASE("what was read before the pipe comes first") {
  loop::Loop loop;
  Pipe pipe(loop, std::chrono::hours(1), "first ");
  pipe.server.send("second");
  CHECK(pipe.arrives(pipe.client, "first second"));
}

TEST_CASE("a client that reads nothing ends the pipe, also after the end of the server") {
  for (const bool server_ends : {false, true}) {
    loop::Loop loop;
    Pipe pipe(loop, std::chrono::milliseconds(1));
    const std::string bytes(1U << 20, 'x');
    // Until the kernel takes no more.
    while (os::write_from(pipe.server.socket, bytes).kind == os::Transfer::Kind::done)
      loop_test::run_ticks(loop);
    if (server_ends) pipe.server.socket = os::Socket();
    CHECK(pipe.has_ended(BytePipe::End::broken));
  }
}

TEST_CASE("a connection that is lost ends the pipe") {
  for (const bool of_client : {true, false}) {
    loop::Loop loop;
    auto listener = loop_test::listening();
    const auto connect = [&] { return loop_test::connect_to(os::local_address(listener)); };
    os::Socket far = connect();
    std::optional<os::Socket> near;
    REQUIRE(loop_test::run_until(loop, [&] {
      near = os::accept_from(listener);
      return bool{*near};
    }));
    auto [other_end, other_here] = loop_test::connected_pair();
    auto lost = loop::open_channel(loop, std::move(*near), {});
    auto other = loop::open_channel(loop, std::move(other_end), {});
    std::optional<BytePipe::End> end;
    BytePipe pipe(loop, std::move(of_client ? lost : other), std::move(of_client ? other : lost),
                  "", std::chrono::hours(1), [&](BytePipe::End how) { end = how; });
    loop_test::reset(std::move(far));
    REQUIRE(loop_test::run_until(loop, [&] { return end.has_value(); }));
    CHECK(*end == BytePipe::End::broken);
  }
}

}  // namespace tubed::server_test
