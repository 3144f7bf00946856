// LearnedAddresses: where other members say that they listen, if the configuration has another
// address for them.
//
// They are hints outside the core: a link also dials them (peer_link.h), and the configuration
// changes only by /cluster/set-address. A member that moves is so reached without a leader, which
// that change needs. A hint that is wrong or lost costs at most time.
//
// The file cluster.addresses in the directory of the node keeps them over restarts, also of all
// nodes at once. It is written at most once a second, in a tick, and a file that is damaged or of
// another cluster counts as empty.
//
// Bounds: one address for each other member.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/member.h"
#include "cluster/types.h"
#include "os/log.h"

namespace tubed::node {

class LearnedAddresses {
 public:
  using All = std::map<cluster::NodeId, cluster::MemberAddress>;

  // `log` outlives the object.
  explicit LearnedAddresses(os::Log& log) : log_(log) {}

  // This node is a member of `cluster`, with its journal in `directory`: reads the file, unless the
  // node was a member of it before. Blocks.
  void open(const std::string& directory, std::uint64_t cluster);

  // `member` says that it listens at `stated`, NAME@HOST:PORT; it has proved that it is that member
  // (PeerHost::on_stated_address), or an operator says it. An address with another name is ignored.
  // Returns true if all() has changed. O(log members).
  bool learn(const cluster::Member& member, std::string_view stated);
  // Forgets the addresses of nodes that are no member, and those that the configuration has too.
  // O(members log members).
  void follow(const std::vector<cluster::Member>& members);
  const All& all() const { return all_; }

  // Writes the file if all() has changed, and the last attempt is long enough ago. Called in each
  // look at the members; `now` is by the node's clock. Blocks.
  void store_when_due(Time now);

 private:
  os::Log& log_;
  std::string directory_;
  std::uint64_t cluster_ = 0;
  All all_;
  bool changed_ = false;  // since the file was written
  Time next_store_ = Time::min();
};

// The contents of the file. O(addresses).
std::string encode(std::uint64_t cluster, const LearnedAddresses::All& addresses);
// Fails if the file is damaged, and returns nothing if it is of another cluster. O(bytes).
Result<LearnedAddresses::All> decode_addresses(std::uint64_t cluster, std::string_view file);

// Removes the file: the node leaves its cluster.
Result<void> forget_learned_addresses(const std::string& directory);

}  // namespace tubed::node
