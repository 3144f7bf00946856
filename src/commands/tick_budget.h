// TickBudget: bounds the work for clients in a tick of the loop.
//
// When the work or the time of a tick is spent, the remaining clients are deferred to later ticks,
// in order. The quantum bounds the work of a client at a time: it is the work of a tick divided by
// the number of waiting clients.
//
// The unit of work is about one command. The clock is read only after some units: a tick with one
// small command does not pay for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace tubed::commands {

class TickBudget {
 public:
  static constexpr std::uint32_t kWork = 8000;
  // The loop does two budgets, deferred work and events, before it polls for new events.
  static constexpr std::chrono::milliseconds kTime{3};
  // With a smaller quantum the system calls would cost more than the work.
  static constexpr std::uint32_t kLeastQuantum = 16;

  // No quantum exceeds `most`.
  explicit TickBudget(std::uint32_t most) { set_most(most); }
  void set_most(std::uint32_t most) { most_ = quantum_ = most; }

  // A tick begins at `now`, with `waiting` deferred clients.
  void begin(Time now, std::size_t waiting) {
    ends_at_ = now + kTime;
    work_left_ = kWork;
    clock_below_ = kWork - kWorkPerClock;
    quantum_ = most_;
    if (waiting == 0) return;
    const auto share = static_cast<std::uint32_t>(kWork / (waiting + 1));
    quantum_ = std::min(most_, std::max(share, kLeastQuantum));
  }

  // How much work one client may do at a time.
  std::uint32_t quantum() const { return quantum_; }

  // A client has used this many units.
  void spend(std::uint32_t work) { work_left_ -= work; }

  // A client was served and has `reply_bytes` to send. clock() returns the time.
  template <class Clock>
  void spend_visit(std::size_t reply_bytes, Clock clock) {
    work_left_ -= static_cast<std::int64_t>(kVisit + reply_bytes / kReplyBytesPerWork);
    if (work_left_ > clock_below_) return;
    clock_below_ = work_left_ - kWorkPerClock;
    if (clock() >= ends_at_) spend_all();
  }

  void spend_all() { work_left_ = 0; }
  bool is_spent() const { return work_left_ <= 0; }

 private:
  // The system calls that read from a client and write to it.
  static constexpr std::size_t kVisit = 8;
  // Sending the replies at the end of the tick takes time too.
  static constexpr std::size_t kReplyBytesPerWork = 1024;
  static constexpr std::int64_t kWorkPerClock = 128;

  std::int64_t work_left_ = kWork;
  std::int64_t clock_below_ = kWork - kWorkPerClock;
  std::uint32_t most_ = 0;
  std::uint32_t quantum_ = 0;
  Time ends_at_;
};

}  // namespace tubed::commands
