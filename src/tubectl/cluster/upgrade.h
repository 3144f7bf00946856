// Upgrade: whether a node of a cluster may be restarted now, which one is next, and what keeps the
// feature level from rising.
//
// Pure, from the state that a node reports. Only the leader knows how far the others are, so only
// its state allows a restart. Of the version of a member, only the highest level that it knows is
// reported: two versions with the same level look alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tubectl/cluster/state.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl::cluster {

struct UpgradeCheck {
  // Why no node may be restarted now. Empty: one may.
  std::vector<std::string> reasons{};
  // The reasons why the level in use does not rise. Empty: it rises, or no member knows a higher
  // level.
  std::vector<std::string> level_waits_for{};
  std::uint64_t level = 1;    // in use
  std::uint64_t highest = 1;  // that a member knows
  // True if members are known to have different levels: an upgrade has begun.
  bool has_begun = false;
  // The names of the nodes that remain, in the order in which to restart them: standbys, voters,
  // the leader. Without an upgrade that has begun, these are all nodes.
  std::vector<std::string> order{};
  std::string leader{};  // empty: not known

  bool may_restart() const { return reasons.empty(); }
};

UpgradeCheck check_upgrade(const State& state);
// The level, a table of the members, and what to do next. Not the reasons.
std::string upgrade_text(const State& state, const UpgradeCheck& check, const Paint& paint);
// The same facts and the reasons, as one line of JSON.
std::string upgrade_json(const State& state, const UpgradeCheck& check);

}  // namespace tubed::tubectl::cluster
