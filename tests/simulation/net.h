// Net: connections in memory, in place of the kernel's.
//
// An Endpoint is one end of a connection. Bytes arrive at the other end later, in order, possibly
// in pieces. An endpoint accepts only as many bytes as fit into its window, together with bytes
// under way and bytes that the other end has not read.
//
// The server process has endpoints with descriptors from kFirstDescriptor, which no real file has.
// machine.cc has the functions of os/socket.h, and uv.cc asks which endpoints are ready.
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
  Duration jitter = std::chrono::microseconds(0);  // additional, up to this
  std::size_t window = 64 << 10;
  unsigned cuts = 0;  // percentage of sends that arrive in two pieces
};

class Endpoint final : public std::enable_shared_from_this<Endpoint> {
 public:
  // Returns the two ends of a connection. Each link carries the bytes to its end.
  static std::pair<std::shared_ptr<Endpoint>, std::shared_ptr<Endpoint>> connect(
      World& world, std::uint64_t number, const Link& to_first, const Link& to_second);

  Endpoint(World& world, Chance chance, const Link& incoming)
      : world_(world), chance_(chance), incoming_(incoming) {}

  // Takes the first bytes and returns their number; 0: no room.
  std::size_t send(std::string_view bytes);
  // The other end will read the end of the stream after all bytes.
  void end_output();
  // Nothing more arrives here. Resets the connection if bytes are unread.
  void close();
  // Loses the connection at both ends at once.
  void reset();

  // Bytes that have arrived.
  std::string_view arrived() const { return arrived_; }
  void take(std::size_t bytes) { arrived_.erase(0, bytes); }
  bool ended() const { return ended_; }  // the other end will send nothing more
  bool lost() const { return lost_; }
  bool has_room() const;
  // True if the other end is closed, which has not been noticed here yet.
  bool is_leaving() const;

  // Calls `event` after each arrival and after the end. For ends that no loop watches.
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
  std::size_t under_way_ = 0;  // bytes under way to this end
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
  // Returns a waiting connection, or -1. Connections of kHttpPort have real descriptors
  // (bridges.h).
  int accept(int listening);
  // Returns null if no connection has this descriptor.
  Endpoint* find(int descriptor);
  bool is_listening(int descriptor) const { return listeners_.contains(descriptor); }
  bool has_waiting(int listening) const { return !listeners_.at(listening).waiting.empty(); }
  void close(int descriptor);
  // Passes bytes through the real descriptors.
  void pump();
  // The process has ended: resets its connections and stops listening.
  void end_process();

  // True if the process has closed the connections of all clients that have left.
  bool is_settled() const;
  std::size_t open_connections() const { return endpoints_.size(); }

  // Gives later connections the default Link.
  void calm_down() { is_calm_ = true; }

  // --- Clients
  // Returns null if nothing listens on the port.
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
