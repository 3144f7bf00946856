#include "engine/tally.h"

#include <algorithm>
#include <iterator>

#include "engine/job.h"

namespace tubed::engine {

namespace {

// How many are forgotten when a tube comes or goes: more than can have been added.
constexpr int kForgottenAtOnce = 2;

}  // namespace

TubeInfo Tally::tube_info() const {
  return {.name = name,
          .jobs = jobs,
          .total_jobs = put_count,
          .waiting_count = waiting_count,
          .delete_count = delete_count,
          .pause = {},
          .pause_left = {}};
}

Duration Tally::oldest_ready_age(Time now) const {
  if (ready_ages.empty()) return {};
  const ReadyAges::Span& oldest = ready_ages.first();
  // Where jobs are taken in the order of their coming, the next one is the oldest.
  const Job* next = tube == nullptr ? nullptr : tube->ready.top();
  const bool is_oldest = next != nullptr && next->created <= oldest.last;
  return std::max(now - (is_oldest ? next->created : oldest.begin), Duration::zero());
}

Tally* TallyBook::open(std::string_view name, const Tube* tube, const Limits& limits, Time now) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    Tally* tally = &found->second;
    TUBED_ASSERT(tally->tube == nullptr);
    const bool over = is_over(*tally, limits, now);
    if (!over) {
      lingering_.erase(tally);
      tally->tube = tube;
      return tally;
    }
    forget(tally);
  }
  forget_some(limits, now);
  if (by_name_.size() >= limits.tallied_tubes || name == kOther) return &other_;
  const auto added = by_name_.try_emplace(std::string(name)).first;
  Tally* tally = &added->second;
  tally->name = added->first;
  tally->tube = tube;
  in_order_.insert_after(added == by_name_.begin() ? nullptr : &std::prev(added)->second, tally);
  return tally;
}

void TallyBook::close(Tally* tally, const Limits& limits, Time now) {
  if (tally == &other_) return;
  tally->tube = nullptr;
  tally->gone = now;
  tally->ready_ages = {};  // with the memory that it had kept
  lingering_.push_back(tally);
  forget_some(limits, now);
}

// Those whose time is over, and where there are more than there may be any longer, the oldest.
void TallyBook::forget_some(const Limits& limits, Time now) {
  for (int i = 0; i < kForgottenAtOnce && !lingering_.empty(); ++i) {
    Tally* oldest = lingering_.first();
    if (by_name_.size() <= limits.tallied_tubes && !is_over(*oldest, limits, now)) return;
    forget(oldest);
  }
}

void TallyBook::forget(Tally* tally) {
  lingering_.erase(tally);
  in_order_.erase(tally);
  by_name_.erase(by_name_.find(tally->name));
}

void TallyBook::check_invariants() const {
  lingering_.check_invariants();
  in_order_.check_invariants();
  std::size_t with_tube = 0;
  const Tally* next = in_order_.first();
  for (const auto& [name, tally] : by_name_) {
    TUBED_ASSERT(name == tally.name && name != kOther && next == &tally);
    next = InOrder::next(next);
    tally.ready_ages.check_invariants();
    if (tally.tube != nullptr) ++with_tube;
    if (tally.tube == nullptr) {
      TUBED_ASSERT(tally.jobs == StateCounts{} && tally.ready_ages.empty());
      TUBED_ASSERT(tally.waiting_count == 0 && tally.paused_count == 0);
    }
  }
  TUBED_ASSERT(next == nullptr);
  TUBED_ASSERT(with_tube + lingering_.size() == by_name_.size());
  TUBED_ASSERT(other_.tube == nullptr);
  other_.ready_ages.check_invariants();
}

}  // namespace tubed::engine
