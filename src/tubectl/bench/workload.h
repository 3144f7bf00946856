// Workload: what the clients of a run send, and what they do with the replies.
//
// It has no sockets and no clock: bench/load.h moves the bytes, and says what time it is. Any reply
// but the one that is due ends the run, as what is measured would be something else.
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
#include "engine/types.h"
#include "tubectl/bench/plan.h"

namespace tubed::tubectl::bench {

enum class Command : std::uint8_t { put, reserve, remove };  // remove: delete

std::string_view name_of(Command command);

// The commands that one client has sent and that are not answered yet, oldest first.
class InFlight {
 public:
  bool empty() const { return runs_.empty(); }
  std::size_t size() const { return size_; }

  void sent(Command command, std::size_t count, Clock::time_point now);

  struct Oldest {
    Command command;
    Clock::time_point sent;
  };
  // It is answered, and no longer here. Precondition: !empty().
  Oldest take_oldest();

 private:
  // Commands of one kind that were sent together: one entry, however many they are.
  struct Run {
    Command command;
    std::size_t count;
    Clock::time_point sent;
  };

  std::deque<Run> runs_;
  std::size_t size_ = 0;
};

// What was done, and whether it counts now.
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
  // `plan` and `measurement` outlive it.
  Workload(const Plan& plan, Measurement& measurement);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  // What that client sends next, whole commands, valid until the next call. Empty: nothing before
  // something is answered, or due.
  virtual std::string_view next(std::size_t client, Clock::time_point now) = 0;
  // A reply that has come to that client.
  Result<void> take(std::size_t client, const client::ReplyView& reply, Clock::time_point now);
  // Nothing new is begun; what is under way is brought to its end.
  virtual void stop() = 0;
  virtual bool finished() const { return unanswered_ == 0; }

  // When a client may send more although nothing has come; the first `timed_clients` are meant.
  virtual std::optional<Clock::time_point> due() const { return std::nullopt; }
  virtual std::size_t timed_clients() const { return 0; }

  // Of a server that says nothing: commands whose answer should have come.
  virtual std::uint64_t overdue() const { return unanswered_; }

 protected:
  struct Completion {
    Command command;
    Clock::time_point sent;
    Clock::time_point came;
    const client::ReplyView& reply;
  };
  // The reply is of the kind that the command asks for.
  virtual Result<void> answered(std::size_t client, const Completion& completion) = 0;

  void sent(std::size_t client, Command command, std::size_t count, Clock::time_point now);
  std::size_t in_flight(std::size_t client) const { return in_flight_[client].size(); }

  const Plan& plan_;
  Measurement& measurement_;

 private:
  std::vector<InFlight> in_flight_;
  std::uint64_t unanswered_ = 0;
};

// What the load keeps of the body of a reserved job: enough for the time stamp of `pipe`.
inline constexpr std::size_t kKeptBodyBytes = 16;
inline constexpr std::string_view kReserveLine = "reserve\r\n";
std::string put_request(const Plan& plan);
void append_delete(std::string& text, JobId id);

}  // namespace tubed::tubectl::bench
