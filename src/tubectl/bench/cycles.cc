#include "tubectl/bench/cycles.h"

#include <algorithm>

namespace tubed::tubectl::bench {

Cycles::Cycles(const Plan& plan, Tally& tally)
    : Workload(plan, tally),
      batch_(std::max<std::size_t>(1, plan.in_flight / kLeastBatch)),
      put_(put_request(plan)),
      to_put_(plan.jobs > 0 ? plan.jobs : UINT64_MAX),
      members_(plan.clients) {}

std::string_view Cycles::next(std::size_t client, Clock::time_point now) {
  request_.clear();
  if (in_flight(client) > 0) return request_;
  Member& member = members_[client];
  const bool strictly = plan_.in_flight == 1;
  if (strictly && !member.held.empty()) {
    add_deletes(client, now);
  } else if (strictly && member.unreserved > 0) {
    add_reserves(client, member.unreserved, now);
  } else {
    add_puts(client, static_cast<std::size_t>(std::min<std::uint64_t>(batch_, to_put_)), now);
    if (!strictly) {
      add_reserves(client, member.unreserved, now);
      add_deletes(client, now);
    }
  }
  return request_;
}

void Cycles::add_puts(std::size_t client, std::size_t count, Clock::time_point now) {
  for (std::size_t i = 0; i < count; ++i) request_ += put_;
  sent(client, Command::put, count, now);
  to_put_ -= count;
  members_[client].unreserved += count;
}

void Cycles::add_reserves(std::size_t client, std::size_t count, Clock::time_point now) {
  for (std::size_t i = 0; i < count; ++i) request_ += kReserveLine;
  sent(client, Command::reserve, count, now);
  members_[client].unreserved -= count;
}

void Cycles::add_deletes(std::size_t client, Clock::time_point now) {
  std::vector<JobId>& held = members_[client].held;
  for (const JobId id : held) append_delete(request_, id);
  sent(client, Command::remove, held.size(), now);
  held.clear();
}

Result<void> Cycles::answered(std::size_t client, const Completion& completion) {
  tally_.count(completion.came - completion.sent);
  if (completion.command == Command::reserve)
    members_[client].held.push_back(completion.reply.number());
  return {};
}

}  // namespace tubed::tubectl::bench
