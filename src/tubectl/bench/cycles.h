// Cycles: each client puts, reserves and deletes in turn.
//
// With one command in flight it does so strictly. With k of them it sends batches: k/3 puts, k/3
// reserves, and the deletes of what the batch before has reserved. A client may get another one's
// job. Each reserve follows a put of its own client, so that there is always a job for it.
#pragma once

#include "tubectl/bench/workload.h"

namespace tubed::tubectl::bench {

class Cycles : public Workload {
 public:
  static constexpr std::size_t kLeastBatch = 3;  // commands in flight, if more than one

  Cycles(const Plan& plan, Tally& tally);

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
