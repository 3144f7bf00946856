// The workloads in which all clients act alike: Puts, Reserves and Cycles. pipe.h has the workload
// with producers and consumers.
#pragma once

#include "tubectl/bench/workload.h"

namespace tubed::tubectl::bench {

// Puts: each client keeps a fixed number of puts in flight.
class Puts : public Workload {
 public:
  Puts(const Plan& plan, std::size_t in_flight, Measurement& measurement);

  std::string_view next(std::size_t client, Clock::time_point now) override;
  void stop() override { to_send_ = 0; }

  // How many were answered, tube by tube.
  const std::vector<std::uint64_t>& in_tubes() const { return in_tubes_; }

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::size_t most_in_flight_;
  std::size_t request_bytes_ = 0;
  std::string requests_;  // ready to be sent: as many as go into one send
  std::uint64_t to_send_;
  std::vector<std::uint64_t> in_tubes_;
};

// Reserves: each client keeps a fixed number of reserves, or deletes of the reserved jobs, in
// flight, until all jobs are deleted. The jobs exist when the workload begins.
class Reserves : public Workload {
 public:
  // `in_tubes`: the ready jobs of each tube. The clients send no more reserves than that, because
  // these would get no reply.
  Reserves(const Plan& plan, std::vector<std::uint64_t> in_tubes, Measurement& measurement);

  std::string_view next(std::size_t client, Clock::time_point now) override;
  void stop() override;

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::vector<std::uint64_t> in_tubes_;
  std::vector<std::vector<JobId>> held_;  // by client: reserved, and their deletes not sent
  std::string request_;
};

// Cycles: each client puts, reserves and deletes in turn.
//
// With one command in flight it does so strictly. With k of them it sends batches: k/3 puts, k/3
// reserves, and the deletes of what the batch before has reserved. A client may get another one's
// job. Each reserve follows a put of its own client, so that there is always a job for it.
class Cycles : public Workload {
 public:
  static constexpr std::size_t kLeastBatch = 3;  // commands in flight, if more than one

  Cycles(const Plan& plan, Measurement& measurement);

  std::string_view next(std::size_t client, Clock::time_point now) override;
  void stop() override { to_put_ = 0; }

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  struct Member {
    std::vector<JobId> held;     // reserved, and their deletes not sent
    std::size_t unreserved = 0;  // puts whose reserve was not sent
  };

  void add_puts(std::size_t client, std::size_t count, Clock::time_point now);
  void add_reserves(std::size_t client, std::size_t count, Clock::time_point now);
  void add_deletes(std::size_t client, Clock::time_point now);

  std::size_t batch_;  // jobs in one
  std::string put_;
  std::uint64_t to_put_;
  std::vector<Member> members_;
  std::string request_;
};

}  // namespace tubed::tubectl::bench
