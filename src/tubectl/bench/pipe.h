// Pipe: producers put jobs; consumers reserve and delete them.
//
// A body begins with the time of its put, which makes the latency end to end. With a rate, the puts
// are due at even intervals. A put that is late because every producer waits for a reply counts
// from the time at which it was due: a stall of the server is charged for the puts that it delays.
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
  // Does not count reserves: consumers wait while the queue is empty.
  std::uint64_t overdue() const override { return (put_ - answered_) + (put_ - deleted_); }

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::string_view next_puts(std::size_t client, Clock::time_point now);
  std::string_view next_reserve(std::size_t client, Clock::time_point now);
  Result<void> consumed(const Completion& completion);
  // When the next put is or was due; `now` without a rate.
  Clock::time_point due_time(Clock::time_point now) const;
  bool has_room() const { return put_ - answered_ < plan_.producers * plan_.in_flight; }

  const Clock::time_point start_;
  std::string put_request_;
  std::size_t stamp_at_;  // offset of the time stamp in put_request_
  std::uint64_t to_put_;
  std::uint64_t put_ = 0;       // sent
  std::uint64_t answered_ = 0;  // of those, answered
  std::uint64_t deleted_ = 0;
  Clock::time_point
      room_since_;           // when a reply last let a producer send after all had been blocked
  std::vector<JobId> held_;  // by client; 0: none
  std::string request_;
};

}  // namespace tubed::tubectl::bench
