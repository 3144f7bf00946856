// CommitDelay: whether a commit waits a moment, so that more facts share its write and its sync.
//
// The journal asks once per tick, at its end, while facts are pending and no commit is in flight.
//
// Where a commit is synced: clients that wait for their replies send their next commands together
// when the replies are there. A commit that began with the first of these commands would leave the
// others to the next commit, and each commit would carry half of them or less. So the commit waits
// until about as many facts are pending as the last commit carried and left pending: for twice the
// time that the last commit took at most, and never for more than a millisecond. If they do not
// come, the next commits do not wait: 2, then 4, up to 16 of them, until a wait succeeds again.
//
// Where a commit is not synced, it is cheap but for its way to another thread and back, which costs
// more than the write itself. So it waits until the loop has polled once more without blocking, if
// the last commit carried more than one fact: a client that is alone does not pay for that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace tubed::journal {

class CommitDelay {
 public:
  // A commit of `facts` facts has ended, `took` after it began, and `pending` facts came meanwhile.
  void committed(std::uint64_t facts, std::uint64_t pending, Duration took, Time now) {
    ticks_left_ = facts > 1 ? kTicksOfOnePoll : 0;
    if (skips_ > 0) --skips_;
    expected_ = (facts + pending) - (facts + pending) / 8;
    until_ = skips_ > 0 ? now : now + std::min<Duration>(kLastCommits * took, kLongest);
    waited_ = false;
  }

  // At the end of a tick, with `pending` facts: true, wait; false, begin the commit.
  // `synced`: the commit will be.
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
  // The tick that appended the facts, and the deferred work of the next tick, which is before the
  // poll.
  static constexpr int kTicksOfOnePoll = 2;

  std::uint64_t expected_ = 0;
  Time until_ = Time::min();
  bool waited_ = false;
  int failures_ = 0;         // waits one after the other that did not bring enough
  std::uint64_t skips_ = 0;  // commits that do not wait
  int ticks_left_ = 0;       // of a commit that is not synced
};

}  // namespace tubed::journal
