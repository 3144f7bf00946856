// Puts: each client keeps so many puts in flight.
#pragma once

#include "tubectl/bench/workload.h"

namespace tubed::tubectl::bench {

class Puts : public Workload {
 public:
  Puts(const Plan& plan, std::size_t in_flight, Tally& tally);

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

}  // namespace tubed::tubectl::bench
