// Node, continued: which entries of the raft log are kept, how the cluster is changed, and which
// members may be invited back.
#include <algorithm>

#include "base/assert.h"
#include "base/planted.h"
#include "cluster/node.h"

namespace tubed::cluster {

// The first of the newest entries up to `position` that are kept. O(log of their number).
Index Node::first_kept(Index position) const {
  const Index oldest = log_->first();
  Index first = position > options_.kept_entries ? position - options_.kept_entries + 1 : 1;
  first = std::max(first, oldest);
  for (Index last = position; first < last;) {
    const Index middle = first + (last - first) / 2;
    if (log_->bytes_of(middle, position) > options_.kept_bytes) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// The first entry that is kept when the journal has everything up to `position`: also what a
// follower that answers still lacks, unless that is too much.
Index Node::first_needed(Index position) const {
  Index first = first_kept(position);
  if (log_->exceeds_bound()) return first;
  first = std::min(first, pinned_);
  if (!leads()) return first;
  const Time recently = host_.clock() - 10 * options_.election_timeout;
  for (const auto& [node, answer] : answered_) {
    Index match = 0;
    if (answer.at > recently && core_match(core_.get(), node, &match) == 0)
      first = std::min(first, match);  // the entries after it are sent with its term
  }
  return first;
}

void Node::journal_synced(Index position) {
  TUBED_ASSERT(position <= commit_);
  if (failed_ || position <= synced_) return;
  // Not for each entry.
  if (position < synced_ + options_.kept_entries / 8 &&
      log_->bytes_of(synced_ + 1, position) < options_.kept_bytes / 8)
    return;
  const Index first = std::max(first_needed(position), log_->first());
  if (const auto kept = keep_configuration(first); !kept) return fail(kept.error().message);
  synced_ = position;
  const auto [configuration, configuration_index] = configuration_at(position);
  const core_update* update = nullptr;
  const int code = core_cut(core_.get(), milliseconds(), position, log_->term_of(position),
                            static_cast<unsigned>(position - first + 1), configuration.data(),
                            configuration.size(), configuration_index, &update);
  done("cut", code, update, {});
  log_->cut(first);
  while (chain_base_ + 1 < std::min(position, log_->first())) {
    chains_.pop_front();
    ++chain_base_;
  }
}

// The state of the node keeps the configuration that is in force before `first`, once its entry is
// cut.
Result<void> Node::keep_configuration(Index first) {
  if (first == log_->first()) return {};
  const auto [configuration, index] = configuration_at(first - 1);
  if (index == state_.configuration_index) return {};
  state_.configuration = std::string(configuration);
  state_.configuration_index = index;
  return store_node_state(storage_, state_);
}

bool Node::may_invite(NodeId member) const {
  if (!leads() || (!has_lease() && !TUBED_PLANTED(invites_without_lease))) return false;
  std::vector<Member> newest = members();
  if (TUBED_PLANTED(invites_by_old_members))
    newest = decode_members(configuration_at(commit_).first).value_or(newest);
  const auto found = std::ranges::find(newest, member, &Member::id);
  return found != newest.end() && found->role == MemberRole::standby;
}

}  // namespace tubed::cluster
