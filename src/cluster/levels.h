// Feature levels: which features the nodes of a cluster may use in frames and in stored data.
//
// Each version of tubed knows all levels up to kFeatureLevel. A cluster uses one level, which all
// its members know: a node neither sends nor stores what a higher level allows. The level in use
// rises when a leader is connected to every member and all know a higher level, by an entry of
// that level in the replicated log (replica.h). It never falls. A node that does not know the level
// in use is not accepted by the others.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tubed::cluster {

using Level = std::uint16_t;

// The level of versions that have no levels.
inline constexpr Level kFirstLevel = 1;
// The highest level that this version knows.
inline constexpr Level kFeatureLevel = 6;

// The features of each level, for the log. docs/internals/cluster-protocol.md has the same list.
inline constexpr std::array<std::string_view, kFeatureLevel + 1> kLevelAllows = {
    "",
    "what the first version with cluster mode knows",
    "fields at the end of frames that an earlier version does not know",
    "appends in parts, so load on a narrow link does not keep signs of life from a node",
    "clients of any node, whose bytes it passes to the leader",
    "host names in the addresses of members",
    "standbys that stay without a vote until they are promoted, and the wall clocks of followers"};

// From this level nodes ignore fields at the end of a frame that they do not know.
inline constexpr Level kLevelOfFields = 2;
// From this level a node takes clients that another node passes on.
inline constexpr Level kLevelOfClients = 4;
// From this level the address of a member may have the name of a host.
inline constexpr Level kLevelOfNames = 5;
// From this level a member may be a standby that stays (Member::stays).
inline constexpr Level kLevelOfStandbys = 6;
// From this level a follower sends its wall clock with the result of an append, and a node the time
// of the cluster with its vote.
inline constexpr Level kLevelOfClocks = 6;

constexpr std::string_view what_level_allows(Level level) {
  return level < kLevelAllows.size() ? kLevelAllows[level] : "what a later version knows";
}

}  // namespace tubed::cluster
