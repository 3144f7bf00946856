// Reserves: each client keeps so many reserves, or the deletes of what it got, in flight, until all
// jobs are gone. The jobs are there when it begins.
#pragma once

#include "tubectl/bench/workload.h"

namespace tubed::tubectl::bench {

class Reserves : public Workload {
 public:
  // So many jobs wait, tube by tube: no more are asked for, as such a reserve would not be
  // answered.
  Reserves(const Plan& plan, std::vector<std::uint64_t> in_tubes, Tally& tally);

  std::string_view next(std::size_t client, Clock::time_point now) override;
  void stop() override;

 protected:
  Result<void> answered(std::size_t client, const Completion& completion) override;

 private:
  std::vector<std::uint64_t> in_tubes_;
  std::vector<std::vector<JobId>> held_;  // by client: reserved, and their deletes not sent
  std::string request_;
};

}  // namespace tubed::tubectl::bench
