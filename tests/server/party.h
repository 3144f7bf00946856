// A client of the server with its other end, for the tests of server/: a socket pair, a queue, and
// a host that only writes down what it is asked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "loop/signal.h"
#include "server/client.h"
#include "tests/loop/loopback.h"
#include "tests/protocol/take_replies.h"

namespace tubed::server_test {

class Host final : public server::ClientHost {
 public:
  void begin_tick() override { ++turns; }
  void look_after(server::Client& client) override { looked_after.push_back(&client); }
  std::span<char> read_buffer() override { return buffer_; }
  bool takes_input() const override { return reads; }
  void defer(server::Client& client) override {
    client.deferred = true;
    deferred.push_back(&client);
  }

  bool reads = true;
  int turns = 0;
  std::vector<server::Client*> looked_after;
  std::vector<server::Client*> deferred;

 private:
  std::vector<char> buffer_ = std::vector<char>(64 * 1024);
};

// The loop, the queue and the host that clients share.
struct House {
  House() { loop::ignore_broken_pipes(); }

  loop::Loop loop;
  commands::Service service{Limits{}, stats::Identity{}, {[] { return stats::CpuTimes{}; }}};
  Host host;
};

// One client and its other end.
struct Party {
  explicit Party(House& shared) : Party(shared, loop_test::connected_pair()) {}

  // What the client says, as if it had arrived and been read.
  void says(std::string_view text) { client.conversation().receive(text); }
  // Its replies, as if it had taken them.
  std::string takes() { return protocol::take_replies(client.conversation().replies()); }

  House& house;
  os::Socket peer;
  server::Client client;

 private:
  Party(House& shared, std::pair<os::Socket, os::Socket> ends)
      : house(shared),
        peer(std::move(ends.second)),
        client(shared.loop, std::move(ends.first), shared.service, shared.host) {}
};

}  // namespace tubed::server_test
