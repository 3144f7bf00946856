// CommitDelay: decides whether a commit waits a moment to let more facts share its write and sync.
//
// The journal asks once per tick, at its end, while facts are pending and no commit is in flight.
//
// Synced commits: clients that wait for their replies send their next commands at the same time,
// when the replies arrive. A commit that began with the first of these commands would leave the
// others to the next commit, and each commit would carry half of them or less. So the commit waits
// until about as many facts are pending as the last commit carried and left pending, but at most
// twice the duration of the last commit, and at most a millisecond. If too few arrive, the next
// commits do not wait: 2, then 4, up to 16 of them, until a wait succeeds again.
//
// Commits without a sync are cheap, except for the way to another thread and back, which costs more
// than the write itself. So if the last commit carried more than one fact, the commit waits until
// the loop has polled once more without blocking. A single client does not pay for that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace tubed::journal {

class CommitDelay {
 public:
  // A commit of `facts` facts has ended after `took`; `pending` facts arrived meanwhile.
  void committed(std::uint64_t facts, std::uint64_t pending, Duration took, Time now) {
    ticks_left_ = facts > 1 ? kTicksOfOnePoll : 0;
    if (skips_ > 0) --skips_;
    expected_ = (facts + pending) - (facts + pending) / 8;
    until_ = skips_ > 0 ? now : now + std::min<Duration>(kLastCommits * took, kLongest);
    waited_ = false;
  }

  // Called at the end of a tick with `pending` facts. Returns true to wait, false to begin the
  // commit. `synced`: whether the commit will be synced.
  bool waits(std::uint64_t pending, Time now, bool synced) {
    if (!synced) return ticks_left_ > 0 && ticks_left_-- > 0;
    if (pending >= expected_) {
      if (waited_) failures_ = 0;
      return false;
    }
    if (now < until_) {
      waited_ = true;
      return true;
    }
    if (waited_) {
      failures_ = std::min(failures_ + 1, kMostFailures);
      skips_ = std::uint64_t{1} << failures_;
      waited_ = false;
    }
    return false;
  }

 private:
  static constexpr int kLastCommits = 2;
  static constexpr Duration kLongest = std::chrono::milliseconds(1);
  static constexpr int kMostFailures = 4;
  // The tick that appended the facts, and the deferred work of the next tick, which precedes the
  // poll.
  static constexpr int kTicksOfOnePoll = 2;

  std::uint64_t expected_ = 0;
  Time until_ = Time::min();
  bool waited_ = false;
  int failures_ = 0;         // consecutive waits that did not bring enough
  std::uint64_t skips_ = 0;  // commits that will not wait
  int ticks_left_ = 0;       // for a commit without a sync
};

}  // namespace tubed::journal
