// SharedSettings: which of the settings that should be the same on all nodes differ between this
// node and the others.
//
// Each node sends the others a digest of each such setting (cluster/control.h), so names are known
// but no values. A member is compared by what it has sent last, also while it is not connected. A
// member of a version that sends nothing is not compared. The log has a line for each change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "config/settings.h"
#include "os/log.h"
#include "stats/cluster.h"

namespace tubed::node {

using SettingDigests = std::vector<cluster::SettingDigest>;

// Returns the digests of this node, which are comparable with those of nodes of the same cluster.
// O(settings).
SettingDigests digests_of(const Settings& settings, std::uint64_t cluster);

class SharedSettings {
 public:
  // `log` outlives the object.
  explicit SharedSettings(os::Log& log) : log_(log) {}

  // O(members * settings), as are the next two.
  void set_own(cluster::NodeId node, const SettingDigests& digests);
  // Forgets nodes that are no longer members.
  void set_members(const std::vector<cluster::Member>& members);
  // Of a member; ignored for any other node.
  void set_of_member(cluster::NodeId node, const SettingDigests& digests);

  // In the order of the settings.
  const std::vector<stats::DifferingSetting>& differing() const { return differing_; }

 private:
  void compare();
  void log_change();

  os::Log& log_;
  cluster::NodeId own_ = 0;
  std::vector<cluster::Member> members_;               // by name
  std::map<cluster::NodeId, SettingDigests> digests_;  // this node's too
  std::vector<stats::DifferingSetting> differing_;
};

}  // namespace tubed::node
