// Helpers for the tests of a fetch: a node whose state is fetched by a directory in the same
// process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "cluster/control.h"
#include "cluster/message.h"
#include "node/state_fetch.h"
#include "node/state_source.h"
#include "os/socket.h"
#include "tests/server/state_rig.h"

namespace tubed::server_test {

// Longer than any test: nothing ends because a thread is late.
inline constexpr Duration kNoTimeout = std::chrono::hours(24);

// The port of a socket that listens, as an address of the node "a".
inline cluster::MemberAddress address_of(const os::Socket& socket) {
  auto address = cluster::parse_member_address("a@" + os::local_address(socket));
  REQUIRE(address.has_value());
  return std::move(*address);
}

// The listening socket of a node. It answers each Hello with the same Welcome.
class Door {
 public:
  explicit Door(loop::Loop& loop, os::Socket listener = loop_test::listening())
      : loop_(loop), listener_(std::move(listener)) {}

  cluster::MemberAddress address() const { return address_of(listener_); }
  // Accepts a connection and reads its Hello. `idle` is called meanwhile.
  template <class Idle>
  os::Socket accept(Idle idle) {
    os::Socket socket;
    REQUIRE(loop_test::run_until(loop_, [&] {
      idle();
      socket = os::Socket(
          ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return static_cast<bool>(socket);
    }));
    std::string hello = loop_test::read_exactly(socket, cluster::kFrameHeaderBytes);
    const auto bytes = cluster::frame_bytes(hello);
    REQUIRE(bytes.has_value());
    hello += loop_test::read_exactly(socket, *bytes - hello.size());
    const auto decoded = cluster::decode_hello(hello);
    REQUIRE(decoded.has_value());
    CHECK(decoded->purpose == cluster::Purpose::fetch);
    return socket;
  }
  os::Socket accept() {
    return accept([] {});
  }

 private:
  loop::Loop& loop_;
  os::Socket listener_;
};

// A fetch into a directory, and how it has ended.
class Fetch {
 public:
  Fetch(loop::Loop& loop, const std::string& directory, const cluster::MemberAddress& source,
        std::uint64_t cluster, cluster::Index at_least = 0) {
    node::StateFetchOptions options;
    options.directory = directory;
    options.source = source;
    options.hello = {.purpose = cluster::Purpose::fetch,
                     .cluster = cluster,
                     .from = 2,
                     .to = 1,
                     .address = "b@127.0.0.1:11302",
                     .configuration_index = 0,
                     .name = {},
                     .invites = false};
    options.at_least = at_least;
    options.raft_log = small_raft_log();
    options.timeout = kNoTimeout;
    fetch_ = std::make_unique<node::StateFetch>(
        loop, std::move(options),
        [this](const Result<node::FetchedState>& result) { result_ = result; });
  }

  bool ended() const { return result_.has_value(); }
  std::string error() const { return error_of(*result_); }
  const node::FetchedState& state() const { return result_->value(); }
  std::uint64_t bytes() const { return fetch_->bytes(); }
  void stop() { fetch_.reset(); }

 private:
  std::optional<Result<node::FetchedState>> result_;
  std::unique_ptr<node::StateFetch> fetch_;
};

// The other side.
class Source {
 public:
  Source(loop::Loop& loop, RunningNode& node, os::Socket socket, const std::string& directory,
         std::uint64_t rate = 0) {
    node::StateSourceOptions options;
    options.directory = directory;
    options.rate = rate;
    options.greeting =
        cluster::encode(cluster::Welcome{.status = cluster::WelcomeStatus::ok, .name = "a"});
    options.timeout = kNoTimeout;
    source_ = std::make_unique<node::StateSource>(
        loop, node.node(), std::move(socket), std::move(options),
        [this](const Result<node::StateSent>& result) { result_ = result; });
  }

  bool ended() const { return result_.has_value(); }
  std::string error() const { return error_of(*result_); }
  const node::StateSent& sent() const { return result_->value(); }
  std::uint64_t bytes() const { return source_->bytes(); }
  void set_rate(std::uint64_t rate) { source_->set_rate(rate); }
  void stop() { source_.reset(); }

 private:
  std::optional<Result<node::StateSent>> result_;
  std::unique_ptr<node::StateSource> source_;
};

// Fetches the state of a node that is at rest.
inline node::FetchedState fetched(loop::Loop& loop, RunningNode& node, const std::string& from,
                                  const std::string& to) {
  Door door(loop);
  Fetch fetch(loop, to, door.address(), node.node().cluster());
  Source source(loop, node, door.accept(), from);
  REQUIRE(node.run_until([&] { return fetch.ended() && source.ended(); }));
  CHECK(source.error() == "");
  REQUIRE(fetch.error() == "");
  return fetch.state();
}

}  // namespace tubed::server_test
