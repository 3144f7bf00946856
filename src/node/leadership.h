// Leadership: the duties of a serving leader: changing the members of the cluster, promoting
// standbys to voters, and passing on leadership.
//
// A transfer goes through these steps:
//  1. hand_over() records the request. Commands that emit facts now wait (is_handing_over()).
//  2. When all facts are committed and the replies can be sent, the node gives up its lease and
//     asks the other node to begin an election (Node::transfer).
//  3. If the other node is elected, leadership is lost here, which the replica notices. If that
//     does not happen within an election timeout, the lease returns and step 2 is retried a few
//     times.
//
// A standby becomes a voter as soon as it has all committed entries, unless it stays
// (Member::stays): then an operator has to promote it first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "cluster/node.h"
#include "cluster/replicated_log.h"
#include "os/log.h"

namespace tubed::node {

class Leadership {
 public:
  // All arguments outlive the object. The node serves.
  Leadership(os::Log& log, cluster::Node& node, const cluster::ReplicatedLog& facts)
      : log_(log), node_(node), facts_(facts) {}

  // Carries out an operator's request: /cluster/add, /cluster/add-standby, /cluster/promote,
  // /cluster/remove, /cluster/set-address, /cluster/transfer. The effect may come later.
  cluster::Response run(const cluster::Request& request);
  // Returns why a request to remove a member is refused; no value: it is carried out, unless
  // another change of the members is under way. O(members).
  std::optional<cluster::Response> refuse_removal(const cluster::Request& request) const;
  // True if the request names this node.
  bool names_itself(const cluster::Request& request) const;

  // Passes leadership to this voter, or to any voter (0), as soon as nothing is under way. Returns
  // false if no other voter exists.
  bool hand_over(cluster::NodeId to);
  bool is_handing_over() const { return step_ != Step::none; }
  // The node should not lead at the time `now`, because it cannot store entries: passes leadership
  // to a voter that can.
  void hand_over_soon(Time now);

  // Takes the next steps. Called in each tick, after the replies were confirmed. `now` is the time
  // of the node's clock.
  void go_on(Time now);

 private:
  enum class Step : std::uint8_t {
    none,
    wanted,  // waits until nothing is under way
    begun,   // the other node is asked
  };

  std::string lost_with(const std::vector<cluster::Member>& members,
                        const cluster::Member& without) const;
  std::optional<cluster::Response> refuse_address(const cluster::MemberAddress& address) const;
  cluster::Response set_address(const cluster::Request& request);
  cluster::Response add(const std::string& name, const std::string& address, bool stays);
  cluster::Response promote(const std::string& name);
  std::optional<cluster::Response> refuse_removal(const std::vector<cluster::Member>& members,
                                                  const std::string& name, bool force) const;
  cluster::Response remove(const std::string& name, bool force);
  cluster::Response transfer(const std::string& name);
  void try_again(std::string_view reason);
  void promote_standbys();

  os::Log& log_;
  cluster::Node& node_;
  const cluster::ReplicatedLog& facts_;
  Step step_ = Step::none;
  cluster::NodeId successor_ = 0;
  int attempts_ = 0;
  Time look_at_ = Time::min();
  Time hand_over_again_at_ = Time::min();
};

// The error of a request that this version does not know, as of the first version.
inline constexpr const char* kNoSuchRequest = "no such request";
inline constexpr std::string_view kSetAddressPath = "/cluster/set-address";
// Why a request with an address is refused.
inline constexpr const char* kNoAddress =
    "\"address\" is not HOST:PORT with a numeric host or the name of a host";
// Returns the "name" and the "address" of a request; no value: they are not those of a node.
std::optional<cluster::MemberAddress> address_in(const cluster::Request& request);

// {"error": "…"}
cluster::Response refusal(std::uint16_t status, const std::string& reason);

}  // namespace tubed::node
