// ServerCounters: the counters of a server since its start, other than those of its commands and of
// its queue.
//
// The server and its conversations count; the rows of stats and of the metrics read. Counts only
// grow. Counting is an addition without allocation or system call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/histogram.h"
#include "base/time.h"

namespace tubed::stats {

// Events that are counted one by one.
enum class Counter : std::uint8_t {
  // Well-formed puts that were refused.
  put_draining,
  put_too_big,
  put_job_memory,  // limits.job_memory, or the heap
  put_journal_full,
  put_tube_full,  // the max-jobs of a policy; moves into the tube too
  put_rate,       // the put_rate of a role
  // Other commands answered OUT_OF_MEMORY.
  tube_limit,
  watch_limit,
  policy_limit,
  // Malformed commands, by reply.
  bad_format,
  unknown_command,
  expected_crlf,
  // Clients that the server closed.
  client_idle,
  client_stalled,
  client_output_memory,
  client_handshake,
  client_foreign,
  // Connections.
  connection,
  refused_connection,
  failed_handshake,
  // Of clients with authentication.
  unauthorized,
  denied,
  admin_command,
};
inline constexpr std::size_t kCounterCount = 23;
static_assert(static_cast<std::size_t>(Counter::admin_command) + 1 == kCounterCount);

class ServerCounters {
 public:
  void count(Counter counter, std::uint64_t times = 1) {
    counts_[static_cast<std::size_t>(counter)] += times;
  }
  std::uint64_t count_of(Counter counter) const {
    return counts_[static_cast<std::size_t>(counter)];
  }

  // Bytes read from and written to the connections of clients.
  void add_received_bytes(std::uint64_t bytes) { received_bytes_ += bytes; }
  void add_sent_bytes(std::uint64_t bytes) { sent_bytes_ += bytes; }
  std::uint64_t received_bytes() const { return received_bytes_; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }

  // How long each tick of the event loop took.
  void add_tick(Duration duration) { tick_times_.add(duration); }
  HistogramCounts tick_times() const { return tick_times_.counts(); }

  // When the first certificate in use expires, since 1970; zero: no certificate is in use.
  void set_certificate_expiry(Duration expiry) { certificate_expiry_ = expiry; }
  Duration certificate_expiry() const { return certificate_expiry_; }

  // How long the server took at its start to restore the jobs from its journal.
  void set_recovery_time(Duration duration) { recovery_time_ = duration; }
  Duration recovery_time() const { return recovery_time_; }

 private:
  std::array<std::uint64_t, kCounterCount> counts_{};
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  ShortTimes tick_times_;
  Duration recovery_time_{};
  Duration certificate_expiry_{};
};

// Where stats shows the counter of a command.
enum class CounterPlace : std::uint8_t {
  beanstalkd,  // among beanstalkd's lines, which it has too
  own,         // after beanstalkd's last line
  last,        // after all other lines: commands that came later than 2.0
};

// How often one command was received in a well-formed line. The command table has one for each row,
// in its order.
struct CommandCount {
  std::string_view command;
  CounterPlace place = CounterPlace::own;
  std::uint64_t count = 0;
};
using CommandCounts = std::span<const CommandCount>;

}  // namespace tubed::stats
