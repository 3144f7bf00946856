#include "tubectl/bench/puts.h"

#include <algorithm>

namespace tubed::tubectl::bench {

Puts::Puts(const Plan& plan, std::size_t in_flight, Tally& tally)
    : Workload(plan, tally),
      most_in_flight_(in_flight),
      to_send_(plan.jobs > 0 ? plan.jobs : UINT64_MAX),
      in_tubes_(plan.tubes) {
  constexpr std::size_t kRequestsBytes = 256 * 1024;
  const std::string request = put_request(plan);
  request_bytes_ = request.size();
  const auto count = std::clamp<std::size_t>(kRequestsBytes / request_bytes_, 1, in_flight);
  for (std::size_t i = 0; i < count; ++i) requests_ += request;
}

std::string_view Puts::next(std::size_t client, Clock::time_point now) {
  const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(
      {most_in_flight_ - in_flight(client), to_send_, requests_.size() / request_bytes_}));
  to_send_ -= count;
  sent(client, Command::put, count, now);
  return std::string_view(requests_).substr(0, count * request_bytes_);
}

Result<void> Puts::answered(std::size_t client, const Completion& completion) {
  tally_.count(completion.came - completion.sent);
  ++in_tubes_[plan_.tube_of(client)];
  return {};
}

}  // namespace tubed::tubectl::bench
