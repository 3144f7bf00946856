// Gathering: whether a commit should wait a moment for those who are likely to come, so that they
// share its sync.
//
// Clients that wait for their replies come back when they have got them. If the next commit began
// with the first of them, the others would just miss it, and each commit would carry half of them
// or less. So it waits until about as many facts are there as the last commit carried and left
// waiting, but no longer than a commit takes. Where that was in vain, it is not tried again for a
// while, longer each time: clients that do not come back are not waited for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace tubed::journal {

class Gathering {
 public:
  // A commit of `facts` facts has ended, `took` after it began, and `pending` facts came meanwhile.
  void committed(std::uint64_t facts, std::uint64_t pending, Duration took, Time now) {
    if (skips_ > 0) --skips_;
    expected_ = (facts + pending) - (facts + pending) / 8;
    until_ = skips_ > 0 ? now : now + std::min<Duration>(kPatience * took, kLongest);
    waited_ = false;
  }

  // With so many facts pending: true, wait; false, begin.
  bool waits(std::uint64_t pending, Time now) {
    if (pending >= expected_) {
      if (waited_) in_vain_ = 0;
      return false;
    }
    if (now < until_) {
      waited_ = true;
      return true;
    }
    if (waited_) {
      in_vain_ = std::min(in_vain_ + 1, kMostInVain);
      skips_ = std::uint64_t{1} << in_vain_;
      waited_ = false;
    }
    return false;
  }

 private:
  static constexpr int kPatience = 2;
  static constexpr Duration kLongest = std::chrono::milliseconds(1);
  static constexpr int kMostInVain = 4;

  std::uint64_t expected_ = 0;
  Time until_ = Time::min();
  bool waited_ = false;
  int in_vain_ = 0;
  std::uint64_t skips_ = 0;  // commits that do not wait
};

// SecondLook: the same question where a commit is not synced. It is cheap, but goes to another
// thread and back, which costs more than the write itself. So it waits for those who are there
// already: the loop is asked once more, without waiting, before the commit begins. A client that is
// alone is not made to pay for that.
class SecondLook {
 public:
  // A commit of `facts` facts has ended.
  void committed(std::uint64_t facts) { left_ = facts > 1 ? kTimes : 0; }

  // True, wait.
  bool waits() {
    if (left_ > 0) --left_;
    return left_ > 0;
  }

 private:
  // How often the question is put until the loop has looked: twice at the end of the turn that told
  // the facts, twice after the work that is left over, and when the look has brought something.
  static constexpr int kTimes = 5;

  int left_ = 0;
};

}  // namespace tubed::journal
