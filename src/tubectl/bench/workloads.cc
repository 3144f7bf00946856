#include "tubectl/bench/workloads.h"

#include <algorithm>

namespace tubed::tubectl::bench {

// Several puts are prepared in one string to avoid formatting for each send.
Puts::Puts(const Plan& plan, std::size_t in_flight, Measurement& measurement)
    : Workload(plan, measurement),
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
  measurement_.count(completion.came - completion.sent);
  ++in_tubes_[plan_.tube_of(client)];
  return {};
}

Reserves::Reserves(const Plan& plan, std::vector<std::uint64_t> in_tubes, Measurement& measurement)
    : Workload(plan, measurement), in_tubes_(std::move(in_tubes)), held_(plan.clients) {}

// Sends deletes first: a held job takes the place of a reserve in flight.
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
  measurement_.count(completion.came - completion.sent);
  if (completion.command == Command::reserve) held_[client].push_back(completion.reply.number());
  return {};
}

Cycles::Cycles(const Plan& plan, Measurement& measurement)
    : Workload(plan, measurement),
      batch_(std::max<std::size_t>(1, plan.in_flight / kLeastBatch)),
      put_(put_request(plan)),
      to_put_(plan.jobs > 0 ? plan.jobs : UINT64_MAX),
      members_(plan.clients) {}

// Sends only when all replies of the client have arrived.
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
  measurement_.count(completion.came - completion.sent);
  if (completion.command == Command::reserve)
    members_[client].held.push_back(completion.reply.number());
  return {};
}

}  // namespace tubed::tubectl::bench
