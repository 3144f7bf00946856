// Connections that were refused, on virtual time: a client that connects again as soon as its
// connection is closed.
#include "serving/held_connections.h"

#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "loop/loop.h"
#include "tests/loop/loopback.h"

using namespace tubed;
using namespace tubed::serving;
using namespace std::chrono_literals;

namespace {

bool is_closed(const os::Socket& peer) {
  std::array<char, 64> buffer;
  return os::read_into(peer, std::span<char>(buffer)).kind == os::Transfer::Kind::end;
}

// A refused connection as the server has it: as a socket, or as a channel.
HeldConnections::Connection connection_of(loop::Loop& loop, os::Socket socket, bool as_channel) {
  if (!as_channel) return socket;
  return loop::open_channel(loop, std::move(socket), {});
}

}  // namespace

TEST_CASE("a client that connects again at once is refused less than 20 times a second") {
  loop::Loop loop;
  for (const bool as_channel : {false, true}) {
    CAPTURE(as_channel);
    HeldConnections held;
    constexpr int kSeconds = 10;
    int refused = 0;
    os::Socket peer;
    for (Time now{}; now < Time(std::chrono::seconds(kSeconds)); now += 1ms) {
      held.close_due(now);
      loop.run_once();
      // All that an instant allows.
      while (refused <= 20 * kSeconds && (!peer || is_closed(peer))) {
        auto [server, client] = loop_test::connected_pair();
        held.hold(connection_of(loop, std::move(server), as_channel), now);
        peer = std::move(client);
        ++refused;
      }
    }
    CHECK(refused <= 20 * kSeconds);
    CHECK(refused >= 4 * kSeconds);  // nor is a connection kept for longer than a quarter
  }
}

TEST_CASE("a refused connection is kept for its time, and its line arrives before the end") {
  HeldConnections held;
  auto [server, peer] = loop_test::connected_pair();
  os::write_from(peer, "list-tubes-watched\r\n");  // unread input must not reset the connection
  os::send_refusal(server, "OUT_OF_MEMORY");
  held.hold(std::move(server), Time(1s));
  CHECK(held.next_due() == Time(1s) + HeldConnections::kTime);
  held.close_due(Time(1s) + 100ms);
  CHECK(held.count() == 1);
  std::array<char, 64> buffer;
  CHECK(os::read_into(peer, std::span<char>(buffer)).bytes == 15);
  CHECK(!is_closed(peer));
  held.close_due(Time(1s) + 250ms);
  CHECK(held.count() == 0);
  CHECK(!held.next_due());
  CHECK(is_closed(peer));
}

TEST_CASE("the oldest of too many refused connections is closed at once") {
  HeldConnections held;
  std::vector<os::Socket> peers;
  for (std::size_t i = 0; i < HeldConnections::kMost + 3; ++i) {
    auto [server, peer] = loop_test::connected_pair();
    os::write_from(peer, "stats\r\n");  // not read by the server: it must not reset the connection
    held.hold(std::move(server), Time{} + std::chrono::microseconds(i));
    peers.push_back(std::move(peer));
  }
  CHECK(held.count() == HeldConnections::kMost);
  CHECK(is_closed(peers[2]));
  CHECK(!is_closed(peers[3]));
  held.close_due(Time{} + HeldConnections::kTime + 3us);
  CHECK(is_closed(peers[3]));
  CHECK(!is_closed(peers[4]));
  held.close_all();
  CHECK(is_closed(peers.back()));
}
