#include "tubectl/bench/reserves.h"

#include <algorithm>

namespace tubed::tubectl::bench {

Reserves::Reserves(const Plan& plan, std::vector<std::uint64_t> in_tubes, Tally& tally)
    : Workload(plan, tally), in_tubes_(std::move(in_tubes)), held_(plan.clients) {}

std::string_view Reserves::next(std::size_t client, Clock::time_point now) {
  request_.clear();
  std::vector<JobId>& held = held_[client];
  for (const JobId id : held) append_delete(request_, id);
  sent(client, Command::remove, held.size(), now);
  held.clear();
  std::uint64_t& jobs = in_tubes_[plan_.tube_of(client)];
  const auto reserves =
      static_cast<std::size_t>(std::min<std::uint64_t>(plan_.in_flight - in_flight(client), jobs));
  for (std::size_t i = 0; i < reserves; ++i) request_ += kReserveLine;
  sent(client, Command::reserve, reserves, now);
  jobs -= reserves;
  return request_;
}

void Reserves::stop() {
  std::fill(in_tubes_.begin(), in_tubes_.end(), 0);
}

Result<void> Reserves::answered(std::size_t client, const Completion& completion) {
  tally_.count(completion.came - completion.sent);
  if (completion.command == Command::reserve) held_[client].push_back(completion.reply.number());
  return {};
}

}  // namespace tubed::tubectl::bench
