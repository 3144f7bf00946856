// StateTransfers: the fetch of another node's state and the sending of this node's, one of each at
// a time. A state that was fetched waits in the directory of the journal for install().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/node.h"
#include "loop/connection.h"
#include "node/cluster_mode.h"
#include "node/state_fetch.h"
#include "node/state_source.h"

namespace tubed::node {

class StateTransfersHost {
 public:
  // Called before each event.
  virtual void begin_tick() = 0;
  // If `fetched`, install() has a state to install.
  virtual void fetch_ended(bool fetched) = 0;

 protected:
  ~StateTransfersHost() = default;
};

class StateTransfers {
 public:
  // Everything that is passed by reference outlives it. `settings` may change, before
  // settings_changed().
  StateTransfers(const ClusterParts& parts, const Settings& settings, StateTransfersHost& host)
      : parts_(parts), settings_(settings), host_(host) {}

  // Fetches the state of the node with this address (NAME@HOST:PORT), whose name completes the
  // Hello, with what this node shows it. Refuses a state that does not go to `at_least`. Does
  // nothing if the address is malformed.
  void fetch(const std::string& address, cluster::Hello hello, const PeerSecurity& security,
             cluster::Index at_least);
  bool is_fetching() const { return fetch_ != nullptr; }
  // Received so far by the fetch, of the journal.
  std::uint64_t fetched_bytes() const { return fetch_ == nullptr ? 0 : fetch_->bytes(); }

  // Sends the state of `node` to the node that has sent the Hello. stop() is called before `node`
  // is destroyed.
  void send(const cluster::Hello& hello, loop::Connection connection, cluster::Node& node);
  bool is_sending() const { return source_ != nullptr; }

  void settings_changed();
  // The lowest rate that a link to another node carries, in bytes per second; 0: unknown. Without
  // cluster.fetch_rate, a fetch takes at most half of it.
  void set_link_rate(double rate);
  // Ends both. A state that was fetched stays.
  void stop();

  // Makes a state that was fetched the state of this node, which is not open. A state that cannot
  // be used is logged, and the old state stays. The error: the directory has neither.
  Result<void> install(cluster::NodeId node);
  std::uint64_t installed() const { return installed_; }

 private:
  void fetch_ended(const Result<FetchedState>& fetched);
  void send_ended(const std::string& to, const Result<StateSent>& sent);

  ClusterParts parts_;
  const Settings& settings_;
  StateTransfersHost& host_;
  std::unique_ptr<StateSource> source_;
  std::unique_ptr<StateFetch> fetch_;
  std::optional<FetchedState> fetched_;  // for install()
  std::uint64_t installed_ = 0;
  double link_rate_ = 0;
};

}  // namespace tubed::node
