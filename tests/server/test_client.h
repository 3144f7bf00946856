// Helpers for the tests of server/: a client of the server and its peer, connected by a socket
// pair; a queue; and a host that records its calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "loop/signal.h"
#include "serving/client.h"
#include "tests/loop/loopback.h"
#include "tests/protocol/take_replies.h"

namespace tubed::server_test {

class Host final : public serving::ClientHost {
 public:
  void begin_tick() override { ++ticks; }
  void mark_dirty(serving::Client& client) override { dirty.push_back(&client); }
  bool takes_input() const override { return reads; }
  void defer(serving::Client& client) override {
    client.queued.deferred = true;
    deferred.push_back(&client);
  }

  bool reads = true;
  int ticks = 0;
  std::vector<serving::Client*> dirty;
  std::vector<serving::Client*> deferred;
};

// The loop, the queue, the host and the buffer that clients share.
struct TestServer {
  TestServer() { loop::ignore_broken_pipes(); }

  loop::Loop loop;
  commands::Service service{Limits{}, stats::ProcessIdentity{}, {[] { return stats::CpuTimes{}; }}};
  Host host;
  std::vector<char> read_buffer = std::vector<char>(64 * 1024);
};

// One client and its peer.
struct TestClient {
  explicit TestClient(TestServer& shared) : TestClient(shared, loop_test::connected_pair()) {}

  // The client runs the text as if it had arrived and been read.
  void sends(std::string_view text) { client.conversation().receive(text); }
  // Returns the replies of the client as if they had been sent.
  std::string take_replies() { return protocol::take_replies(client.conversation().replies()); }

  TestServer& server;
  os::Socket peer;
  serving::Client client;

 private:
  TestClient(TestServer& shared, std::pair<os::Socket, os::Socket> ends)
      : server(shared),
        peer(std::move(ends.second)),
        client(loop::open_channel(shared.loop, std::move(ends.first), {}), shared.service,
               shared.host, shared.read_buffer) {}
};

}  // namespace tubed::server_test
