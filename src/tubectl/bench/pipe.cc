// Clients below plan.producers put, the others consume. next_puts() stamps each body with the time
// of its put, in 16 hexadecimal digits; if the put was due while no producer could send, with the
// time at which it was due. consumed() reads the stamp when the job arrives at a consumer and
// counts the difference. All clients share one monotonic clock, so the difference is exact. A stamp
// of another run shows that the tube held other jobs, and ends the run.
#include "tubectl/bench/pipe.h"

#include <cmath>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::tubectl::bench {
namespace {

constexpr std::size_t kEnoughBytes = 64 * 1024;  // for one send

std::uint64_t nanoseconds_of(Clock::time_point time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

}  // namespace

Pipe::Pipe(const Plan& plan, Clock::time_point start, Measurement& measurement)
    : Workload(plan, measurement),
      start_(start),
      put_request_(put_request(plan)),
      stamp_at_(put_request_.find('\n') + 1),
      to_put_(plan.jobs > 0 ? plan.jobs : UINT64_MAX),
      room_since_(start),
      held_(plan.clients) {}

Clock::time_point Pipe::due_time(Clock::time_point now) const {
  if (plan_.rate <= 0) return now;
  const double nanoseconds = static_cast<double>(put_) * 1e9 / plan_.rate;
  return start_ + std::chrono::nanoseconds(std::llround(nanoseconds));
}

std::optional<Clock::time_point> Pipe::due() const {
  if (plan_.rate <= 0 || to_put_ == 0 || !has_room()) return std::nullopt;
  return due_time(start_);
}

std::string_view Pipe::next(std::size_t client, Clock::time_point now) {
  return client < plan_.producers ? next_puts(client, now) : next_reserve(client, now);
}

std::string_view Pipe::next_puts(std::size_t client, Clock::time_point now) {
  request_.clear();
  while (to_put_ > 0 && in_flight(client) < plan_.in_flight && request_.size() < kEnoughBytes) {
    const Clock::time_point due = due_time(now);
    if (due > now) break;
    const auto stamp = put_request_.begin() + static_cast<std::ptrdiff_t>(stamp_at_);
    fmt::format_to(stamp, "{:016x}", nanoseconds_of(due < room_since_ ? due : now));
    request_ += put_request_;
    --to_put_;
    ++put_;
    sent(client, Command::put, 1, now);
  }
  return request_;
}

// A consumer has one reserve in flight. The delete of its last job is sent together with the next
// reserve.
std::string_view Pipe::next_reserve(std::size_t client, Clock::time_point now) {
  JobId& held = held_[client];
  if (held == 0 && in_flight(client) > 0) return {};
  request_.clear();
  if (held != 0) {
    append_delete(request_, held);
    sent(client, Command::remove, 1, now);
    held = 0;
  }
  request_ += kReserveLine;
  sent(client, Command::reserve, 1, now);
  return request_;
}

Result<void> Pipe::answered(std::size_t client, const Completion& completion) {
  switch (completion.command) {
    case Command::put:
      if (!has_room()) room_since_ = completion.came;
      ++answered_;
      return {};
    case Command::reserve:
      held_[client] = completion.reply.number();
      return consumed(completion);
    case Command::remove:
      ++deleted_;
      return {};
  }
  return {};
}

Result<void> Pipe::consumed(const Completion& completion) {
  const std::string_view stamp = completion.reply.body;
  const auto begun = parse_number<std::uint64_t>(stamp, 16);
  if (!begun || stamp.size() != kLeastBodyBytes || *begun < nanoseconds_of(start_) ||
      *begun > nanoseconds_of(completion.came)) {
    return Error{"a job was reserved that this run has not put: its tubes have to be empty"};
  }
  measurement_.count(std::chrono::nanoseconds(nanoseconds_of(completion.came) - *begun));
  return {};
}

}  // namespace tubed::tubectl::bench
