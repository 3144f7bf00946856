// HostConnector: makes one TCP connection to a host, which is numeric or a name.
//
// A numeric host is left to Connector. A name is resolved (loop/name_lookup.h), and its addresses
// are tried in their order until one accepts the connection. Each takes at most its share of the
// time that is left, so that an address that does not answer keeps none from its turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "loop/connector.h"
#include "loop/name_lookup.h"
#include "text/host.h"

namespace tubed::loop {

class HostConnector {
 public:
  using Done = Connector::Done;
  // The addresses of the name, before they are tried.
  using Resolved = std::function<void(const std::vector<NumericHost>&)>;

  // Calls `resolved` at most once, and then `done` once, in later events of the loop; `done` may
  // destroy the object, `resolved` may not. The whole attempt takes at most options.limit.
  // Destroying the object earlier cancels the attempt. `loop` outlives the object.
  HostConnector(Loop& loop, const std::string& host, std::uint16_t port,
                const ConnectOptions& options, Resolved resolved, Done done);

 private:
  void on_resolved(NameLookup::Found result);
  void try_next();

  Loop& loop_;
  const std::uint16_t port_;
  const ConnectOptions options_;
  const Resolved resolved_;
  Done done_;
  Time deadline_ = {};  // of a name
  std::unique_ptr<NameLookup> lookup_;
  std::vector<NumericHost> left_;  // addresses to try, the next last
  std::unique_ptr<Connector> connector_;
};

}  // namespace tubed::loop
