// Workload: the commands that the clients of a run send, and how they handle the replies.
//
// It has no sockets and no clock: bench/load.h transfers the bytes and passes the time. An
// unexpected reply ends the run, because it makes the measurements meaningless.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/reply_parser.h"
#include "facts/types.h"
#include "tubectl/bench/plan.h"

namespace tubed::tubectl::bench {

enum class Command : std::uint8_t { put, reserve, remove };  // remove: the command delete

std::string_view name_of(Command command);

// The unanswered commands of one client, oldest first.
class InFlight {
 public:
  bool empty() const { return runs_.empty(); }
  std::size_t size() const { return size_; }

  void sent(Command command, std::size_t count, Clock::time_point now);

  struct Oldest {
    Command command;
    Clock::time_point sent;
  };
  // Removes the oldest command, which is answered. Precondition: !empty().
  Oldest take_oldest();

 private:
  // Commands of one kind that were sent together, in one entry.
  struct Run {
    Command command;
    std::size_t count;
    Clock::time_point sent;
  };

  std::deque<Run> runs_;
  std::size_t size_ = 0;
};

// Counts the operations of a run, and measures them while `measuring` is set.
struct Measurement {
  Figures figures;
  bool measuring = false;

  void count(Clock::duration taken) {
    ++figures.all;
    if (!measuring) return;
    ++figures.measured;
    figures.latencies.add(taken);
  }
};

class Workload {
 public:
  // `plan` and `measurement` outlive the workload.
  Workload(const Plan& plan, Measurement& measurement);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  // The next commands of the client, complete; valid until the next call. Empty: the client waits
  // for a reply or for a due time.
  virtual std::string_view next(std::size_t client, Clock::time_point now) = 0;
  // Takes a reply that has arrived at the client.
  Result<void> take(std::size_t client, const client::ReplyView& reply, Clock::time_point now);
  // Starts no new operations; operations in progress are completed.
  virtual void stop() = 0;
  virtual bool finished() const { return unanswered_ == 0; }

  // When one of the first `timed_clients` may send more even without a reply.
  virtual std::optional<Clock::time_point> due() const { return std::nullopt; }
  virtual std::size_t timed_clients() const { return 0; }

  // The number of commands that count as unanswered if the server is silent.
  virtual std::uint64_t overdue() const { return unanswered_; }

 protected:
  struct Completion {
    Command command;
    Clock::time_point sent;
    Clock::time_point came;
    const client::ReplyView& reply;
  };
  // Called when the reply is of the kind that the command asks for.
  virtual Result<void> answered(std::size_t client, const Completion& completion) = 0;

  void sent(std::size_t client, Command command, std::size_t count, Clock::time_point now);
  std::size_t in_flight(std::size_t client) const { return in_flight_[client].size(); }

  const Plan& plan_;
  Measurement& measurement_;

 private:
  std::vector<InFlight> in_flight_;
  std::uint64_t unanswered_ = 0;
};

// Bytes kept of the body of a reserved job: enough for the time stamp of `pipe`.
inline constexpr std::size_t kKeptBodyBytes = 16;
inline constexpr std::string_view kReserveLine = "reserve\r\n";
std::string put_request(const Plan& plan);
void append_delete(std::string& text, JobId id);

}  // namespace tubed::tubectl::bench
