#include "cluster/entry_times.h"

#include "cluster/entry.h"

namespace tubed::cluster {

void EntryTimes::reset() {
  others_.clear();
  dropped_.clear();
}

void EntryTimes::before_cut(const RaftLog& log, const ClusterClock& clock, Index first,
                            NodeId follower, Index match) {
  const Index lacked = match + 1;
  if (lacked >= first) {
    dropped_.erase(follower);
  } else if (const auto time = after(log, clock, follower, match)) {
    dropped_[follower] = {.index = lacked, .time = *time};
  }
}

// An entry of an earlier leader without facts has no known time. The next entry was appended at
// most an election later.
std::optional<Time> EntryTimes::after(const RaftLog& log, const ClusterClock& clock,
                                      NodeId follower, Index match) const {
  const Index lacked = match + 1;
  const auto dropped = dropped_.find(follower);
  if (dropped != dropped_.end() && dropped->second.index == lacked) return dropped->second.time;
  if (lacked < log.first()) return std::nullopt;
  for (Index i = lacked; i <= log.last(); ++i) {
    if (const auto other = others_.find(i); other != others_.end()) return other->second;
    const Entry& entry = log.at(i);
    if (entry.type != EntryType::facts || !clock.is_set()) continue;
    if (const auto header = read_entry_header(entry.data.view())) return clock.local(header->time);
  }
  return std::nullopt;
}

}  // namespace tubed::cluster
