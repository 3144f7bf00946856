// Pipe: producers put, consumers wait in a reserve, delete what they get, and wait again.
//
// A body begins with the time of its put, so that the latency is end to end. With a rate the puts
// are due at even distances of time. A put that is late because every producer waits for its reply
// counts from the time it was due: a stall of the server is charged for the puts it has delayed.
#pragma once

#include "tubectl/bench/workload.h"

namespace tubed::tubectl::bench {

class Pipe : public Workload {
 public:
  static constexpr std::size_t kLeastBodyBytes = kKeptBodyBytes;

  Pipe(const Plan& plan, Clock::time_point start, Measurement& measurement);

  std::string_view next(std::size_t client, Clock::time_point now) override;
  void stop() override { to_put_ = 0; }
  bool finished() const override { return to_put_ == 0 && overdue() == 0; }
  std::optional<Clock::time_point> due() const override;
  std::size_t timed_clients() const override { return plan_.producers; }
  // Without the reserves: consumers wait while the queue is empty.
  std::uint64_t overdue() const override { return (put_ - answered_) + (put_ - deleted_); }

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::string_view next_puts(std::size_t client, Clock::time_point now);
  std::string_view next_reserve(std::size_t client, Clock::time_point now);
  Result<void> consumed(const Completion& completion);
  // When the next put is due, or was; `now` without a rate.
  Clock::time_point due_time(Clock::time_point now) const;
  bool has_room() const { return put_ - answered_ < plan_.producers * plan_.in_flight; }

  const Clock::time_point start_;
  std::string put_request_;
  std::size_t stamp_at_;  // offset of the time in it
  std::uint64_t to_put_;
  std::uint64_t put_ = 0;       // sent
  std::uint64_t answered_ = 0;  // of them
  std::uint64_t deleted_ = 0;
  Clock::time_point
      room_since_;           // when a reply last made room after all producers had been blocked
  std::vector<JobId> held_;  // by client; 0: none
  std::string request_;
};

}  // namespace tubed::tubectl::bench
