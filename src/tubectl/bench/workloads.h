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

  // The number of answered puts for each tube.
  const std::vector<std::uint64_t>& in_tubes() const { return in_tubes_; }

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::size_t most_in_flight_;
  std::size_t request_bytes_ = 0;
  std::string requests_;  // as many requests as one send takes
  std::uint64_t to_send_;
  std::vector<std::uint64_t> in_tubes_;
};

// Reserves: each client keeps a fixed number of reserves, or deletes of the reserved jobs, in
// flight until all jobs are deleted. The jobs exist when the workload begins.
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
  std::vector<std::vector<JobId>> held_;  // by client: reserved jobs whose deletes are not sent yet
  std::string request_;
};

// Cycles: each client repeatedly puts, reserves and deletes.
//
// With one command in flight it does so strictly. With k commands it sends batches: k/3 puts, k/3
// reserves, and the deletes of the jobs that the previous batch has reserved. A client may get a
// job of another client. Each reserve follows a put of the same client, so a job for it exists.
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
    std::vector<JobId> held;     // reserved jobs whose deletes are not sent yet
    std::size_t unreserved = 0;  // puts whose reserves are not sent yet
  };

  void add_puts(std::size_t client, std::size_t count, Clock::time_point now);
  void add_reserves(std::size_t client, std::size_t count, Clock::time_point now);
  void add_deletes(std::size_t client, Clock::time_point now);

  std::size_t batch_;  // jobs per batch
  std::string put_;
  std::uint64_t to_put_;
  std::vector<Member> members_;
  std::string request_;
};

}  // namespace tubed::tubectl::bench
