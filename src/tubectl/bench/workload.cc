#include "tubectl/bench/workload.h"

#include <iterator>

#include <fmt/format.h>

#include "base/assert.h"
#include "tubectl/commands/command.h"

namespace tubed::tubectl::bench {
namespace {

std::string_view expected_word(Command command) {
  switch (command) {
    case Command::put:
      return "INSERTED";
    case Command::reserve:
      return "RESERVED";
    case Command::remove:
      return "DELETED";
  }
  return "";
}

}  // namespace

std::string_view name_of(Command command) {
  switch (command) {
    case Command::put:
      return "put";
    case Command::reserve:
      return "reserve";
    case Command::remove:
      return "delete";
  }
  return "";
}

void InFlight::sent(Command command, std::size_t count, Clock::time_point now) {
  if (count == 0) return;
  runs_.push_back(Run{command, count, now});
  size_ += count;
}

InFlight::Oldest InFlight::take_oldest() {
  TUBED_ASSERT(!empty());
  Run& run = runs_.front();
  const Oldest oldest{run.command, run.sent};
  if (--run.count == 0) runs_.pop_front();
  --size_;
  return oldest;
}

Workload::Workload(const Plan& plan, Measurement& measurement)
    : plan_(plan), measurement_(measurement), in_flight_(plan.clients) {}

Result<void> Workload::take(std::size_t client, const client::ReplyView& reply,
                            Clock::time_point now) {
  InFlight& in_flight = in_flight_[client];
  if (in_flight.empty()) return Error{fmt::format("the server said {:?} unasked", reply.line)};
  const InFlight::Oldest oldest = in_flight.take_oldest();
  if (!reply.is(expected_word(oldest.command))) {
    if (is_access_refusal(reply.line)) {
      return Error{fmt::format("{}: {}", name_of(oldest.command),
                               meaning_of({std::string(reply.line), {}}))};
    }
    return Error{fmt::format("a {} was answered {:?}", name_of(oldest.command), reply.line)};
  }
  --unanswered_;
  return answered(client, Completion{oldest.command, oldest.sent, now, reply});
}

void Workload::sent(std::size_t client, Command command, std::size_t count, Clock::time_point now) {
  in_flight_[client].sent(command, count, now);
  unanswered_ += count;
}

// A complete put with its body, sent unchanged for every job.
std::string put_request(const Plan& plan) {
  return fmt::format("put {} {} {} {}\r\n{}\r\n", plan.priority, plan.delay_seconds,
                     plan.ttr_seconds, plan.body_bytes, std::string(plan.body_bytes, 'x'));
}

void append_delete(std::string& text, JobId id) {
  fmt::format_to(std::back_inserter(text), "delete {}\r\n", id);
}

}  // namespace tubed::tubectl::bench
