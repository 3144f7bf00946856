// Bridges: the connections of the simulated network that the process has as real descriptors.
//
// libmicrohttpd calls the kernel itself. It gets one end of a pair of unix sockets for each
// connection; the bridge has the other end, and passes bytes, the end of the stream and resets
// between the pair and an Endpoint. The loop calls pump() before it asks the kernel what is ready,
// so nothing happens between two events of the world.
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

  // Returns the descriptor for the process, which owns it; -1: the kernel has none.
  int add(std::shared_ptr<Endpoint> endpoint);
  // Passes everything that can be passed. O(connections with events).
  void pump();
  // The process has ended.
  void reset_all();
  std::size_t count() const { return bridges_.size(); }

 private:
  struct Bridge {
    int descriptor;
    std::shared_ptr<Endpoint> endpoint;
    std::string unsent = {};         // of the process, that the endpoint had no room for
    bool client_has_ended = false;   // and the process was told so
    bool process_has_ended = false;  // its output
  };

  // False: the bridge is closed.
  bool pass(Bridge& bridge);
  void pass_to_process(Bridge& bridge);
  bool pass_to_client(Bridge& bridge);

  int epoll_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Bridge> bridges_;
  std::set<std::uint64_t> ready_;  // to be passed
};

}  // namespace tubed::simulation
