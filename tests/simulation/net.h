// Net: connections in memory, as the kernel has them.
//
// An Endpoint is one end of a connection. Bytes arrive at the other end later, in order, and
// possibly in pieces. An endpoint takes no more bytes than its window has room for: those under way
// and those that the other end has not read.
//
// The process of the server has endpoints by descriptors from kFirstDescriptor on, which no real
// file has. The functions of os/socket.h are in machine.cc, and what is ready is asked by uv.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tests/simulation/chance.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

// The properties of one direction of a connection.
struct Link {
  Duration latency = std::chrono::microseconds(50);
  Duration jitter = std::chrono::microseconds(0);  // in addition, up to this
  std::size_t window = 64 << 10;
  unsigned cuts = 0;  // percent of the sends that arrive in two pieces
};

class Endpoint final : public std::enable_shared_from_this<Endpoint> {
 public:
  // Two ends of a connection. `link` is that of the bytes to the end that it is given with.
  static std::pair<std::shared_ptr<Endpoint>, std::shared_ptr<Endpoint>> connect(
      World& world, std::uint64_t number, const Link& to_first, const Link& to_second);

  Endpoint(World& world, Chance chance, const Link& incoming)
      : world_(world), chance_(chance), incoming_(incoming) {}

  // Takes the first bytes, and returns how many; none: there is no room.
  std::size_t send(std::string_view bytes);
  // The other end reads the end of the stream after all bytes.
  void end_output();
  // Nothing more arrives here. With bytes that were not read the connection is reset.
  void close();
  // The connection is lost at both ends at once.
  void reset();

  // Bytes that have arrived.
  std::string_view arrived() const { return arrived_; }
  void take(std::size_t bytes) { arrived_.erase(0, bytes); }
  bool ended() const { return ended_; }  // the other end sends nothing more
  bool lost() const { return lost_; }
  bool has_room() const;
  // The other end is closed, which is not seen here yet.
  bool is_leaving() const;

  // Called after each arrival, and after the end. For ends that no loop watches.
  void on_event(std::function<void()> event) { event_ = std::move(event); }

 private:
  void arrive(std::string_view bytes);
  void arrive_end();
  void plan(std::function<void(Endpoint&)> at_other_end);
  void report();

  World& world_;
  Chance chance_;
  Link incoming_;
  std::weak_ptr<Endpoint> other_;
  std::string arrived_;
  std::size_t under_way_ = 0;  // bytes to this end
  Time last_;                  // when the last of them arrives
  bool ended_ = false;
  bool lost_ = false;
  bool closed_ = false;
  bool output_ended_ = false;
  std::function<void()> event_;
};

class Bridges;

class Net {
 public:
  static constexpr std::uint16_t kHttpPort = 11380;
  static constexpr int kFirstDescriptor = 1'000'000;

  explicit Net(World& world);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  static Net& current();

  // --- The process of the server
  int listen(std::uint16_t port);
  // A connection that waits, or -1. Those of kHttpPort have real descriptors (bridges.h).
  int accept(int listening);
  // Null: no connection has this descriptor.
  Endpoint* find(int descriptor);
  bool is_listening(int descriptor) const { return listeners_.contains(descriptor); }
  bool has_waiting(int listening) const { return !listeners_.at(listening).waiting.empty(); }
  void close(int descriptor);
  // Passes bytes through the real descriptors.
  void pump();
  // The process has ended: its connections are reset, and nothing listens.
  void end_process();

  // True: no client has left whose connection the process has not closed.
  bool is_settled() const;
  std::size_t open_connections() const { return endpoints_.size(); }

  // All links of later connections are as Link() is.
  void calm_down() { is_calm_ = true; }

  // --- Clients
  // Null: nothing listens on the port.
  std::shared_ptr<Endpoint> connect(std::uint16_t port, const Link& to_server,
                                    const Link& to_client);

 private:
  struct Listener {
    std::uint16_t port;
    std::deque<std::shared_ptr<Endpoint>> waiting;
  };

  World& world_;
  std::map<int, Listener> listeners_;
  std::map<int, std::shared_ptr<Endpoint>> endpoints_;
  int next_ = kFirstDescriptor;
  std::uint64_t connections_ = 0;
  bool is_calm_ = false;
  std::unique_ptr<Bridges> bridges_;
};

}  // namespace tubed::simulation
