// RaftCore: the core of a node (core.h) with its clock, and what it knows. Node takes its steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "cluster/core.h"
#include "cluster/member.h"
#include "cluster/membership.h"
#include "cluster/node_host.h"
#include "cluster/types.h"

namespace tubed::cluster {

class RaftCore {
 public:
  explicit RaftCore(const NodeHost& host) : host_(host) {}

  // Returns false if memory is exhausted. Called once, before all other functions.
  bool create(const core_settings& settings) {
    core_.reset(core_create(&settings));
    return core_ != nullptr;
  }
  // For the steps, with time().
  tubed_core* get() const { return core_.get(); }
  // Returns the clock of the core: milliseconds that never go back.
  std::uint64_t time() {
    const Duration now = host_.clock().time_since_epoch();
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    return milliseconds_ = std::max(milliseconds_, static_cast<std::uint64_t>(count));
  }

  bool leads() const { return core_state(get()) == CORE_LEADER; }
  bool is_candidate() const { return core_state(get()) == CORE_CANDIDATE; }
  Term term() const { return core_term(get()); }
  // Returns the leader that this node follows, or this node; 0: unknown.
  NodeId leader() const { return core_leader(get()); }
  // Returns the node to which leadership is being transferred; 0: none.
  NodeId transferee() const { return core_transferee(get()); }
  // Returns when core_timeout() is due.
  Time deadline() const { return Time(std::chrono::milliseconds(core_deadline(get()))); }
  // On a leader: the last entry that this member is known to have. Nothing: unknown.
  std::optional<Index> match(NodeId member) const {
    Index match = 0;
    if (core_match(get(), member, &match) != 0) return std::nullopt;
    return match;
  }
  // Returns the members of the current configuration, which may not be committed.
  std::vector<Member> members() const {
    std::vector<core_member> list(core_members(get(), nullptr, 0));
    core_members(get(), list.data(), static_cast<unsigned>(list.size()));
    return as_members(list);
  }

 private:
  struct Free {
    void operator()(tubed_core* core) const { core_destroy(core); }
  };

  const NodeHost& host_;
  std::unique_ptr<tubed_core, Free> core_;
  std::uint64_t milliseconds_ = 0;  // as last passed to the core
};

}  // namespace tubed::cluster
