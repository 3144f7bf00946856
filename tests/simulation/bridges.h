// Bridges: connections of the simulated network for which the process has real descriptors.
//
// libmicrohttpd calls the kernel itself. For each connection it gets one end of a pair of unix
// sockets; the bridge has the other end, and passes bytes, the end of the stream and resets between
// the pair and an Endpoint. The loop calls pump() before it asks the kernel what is ready, so
// nothing happens between two events of the world.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/simulation/net.h"

namespace tubed::simulation {

class Bridges {
 public:
  Bridges();
  ~Bridges();
  Bridges(const Bridges&) = delete;
  Bridges& operator=(const Bridges&) = delete;

  // Returns a descriptor, which the process then owns; -1: no descriptor is free.
  int add(std::shared_ptr<Endpoint> endpoint);
  // Passes everything that can be passed. O(connections with events).
  void pump();
  // The process has ended: resets all connections.
  void reset_all();
  std::size_t count() const { return bridges_.size(); }

 private:
  struct Bridge {
    int descriptor;
    std::shared_ptr<Endpoint> endpoint;
    std::string unsent = {};         // from the process; the endpoint had no room
    bool client_has_ended = false;   // and the process has seen that
    bool process_has_ended = false;  // ended its output
  };

  // Returns false if the bridge is closed.
  bool pass(Bridge& bridge);
  void pass_to_process(Bridge& bridge);
  bool pass_to_client(Bridge& bridge);

  int epoll_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Bridge> bridges_;
  std::set<std::uint64_t> ready_;  // with something to pass
};

}  // namespace tubed::simulation
