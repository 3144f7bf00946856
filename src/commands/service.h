// Service: what all conversations of a server share: the queue, the time, the counters.
//
// It owns the engine and passes on what the engine emits: facts to the log, notices to the
// conversation that waits. It never touches a socket: who runs it asks, after each turn, which
// sessions were answered while they did nothing themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "commands/table.h"
#include "commands/tick_budget.h"
#include "commands/tube_list.h"
#include "engine/engine.h"
#include "engine/fact_log.h"
#include "engine/output.h"

namespace tubed::commands {

class Conversation;

// What the metrics count beside commands and connections.
enum class Counter : std::uint8_t {
  // Well-formed puts that were refused.
  put_draining,
  put_too_big,
  put_job_memory,  // limits.job_memory, or the heap
  put_journal_full,
  // Other commands answered OUT_OF_MEMORY.
  tube_limit,
  watch_limit,
  // Malformed commands, by reply.
  bad_format,
  unknown_command,
  expected_crlf,
  // Clients that the server closed.
  client_idle,
  client_stalled,
  client_output_memory,
};
inline constexpr std::size_t kCounterCount = 12;
static_assert(static_cast<std::size_t>(Counter::client_output_memory) + 1 == kCounterCount);

// Bounds of one conversation.
struct ConversationLimits {
  std::uint32_t line_bytes = 224;           // a command line with its end [notes: Lines]
  std::uint64_t output_bytes = 1ULL << 20;  // replies not yet sent; beyond, nothing more is done
  std::uint64_t input_memory = 1ULL << 28;  // input of all conversations that waits
};

// What stats tells about the process.
struct Identity {
  std::uint64_t process_id = 0;
  std::string instance;  // a random id of this run
  std::string hostname;
  std::string os;
  std::string platform;
  Time started;
  Duration started_at{};  // the same since 1970
};

struct CpuTimes {
  Duration user{};
  Duration system{};
};

// What is asked of the operating system when it is wanted.
struct Process {
  std::function<CpuTimes()> cpu_times;
  std::function<std::uint64_t()> resident_bytes = [] { return std::uint64_t{0}; };
  std::function<std::uint64_t()> open_descriptors = [] { return std::uint64_t{0}; };
  std::function<std::uint64_t()> descriptor_limit = [] { return std::uint64_t{0}; };
};

class Service final : public engine::Output {
 public:
  Service(const Limits& limits, Identity identity, Process process);

  // A turn: the time stands still until the next one. What is due happens first.
  void begin_tick(Time now);
  Time now() const { return now_; }

  engine::Engine& engine() { return engine_; }
  const engine::Engine& engine() const { return engine_; }

  // Where facts go: a NullLog unless another log is set, which outlives the service. `recovery` is
  // how long it took to restore the jobs from it.
  void set_log(FactLog& log, Duration recovery = {}) {
    log_ = &log;
    recovery_ = recovery;
  }
  FactLog& log() { return *log_; }
  const FactLog& log() const { return *log_; }
  Duration recovery_time() const { return recovery_; }

  void set_limits(const Limits& limits, const ConversationLimits& conversation);
  const ConversationLimits& conversation_limits() const { return conversation_limits_; }

  bool draining() const { return draining_; }
  void set_draining(bool draining) { draining_ = draining; }

  TickBudget& tick_budget() { return tick_budget_; }

  // How many of `wanted` bytes the next read may bring: fewer in a crowd, and fewer as the input
  // that waits approaches input_memory. Beyond it they are kLeastReadBytes. One conversation keeps
  // one read's input and an unfinished line at most, so that input_memory + connections *
  // kLeastReadBytes bounds them all.
  std::size_t read_bytes(std::size_t wanted) const {
    const std::uint64_t bound = conversation_limits_.input_memory;
    const std::uint64_t room = bound > input_bytes_ ? bound - input_bytes_ : 0;
    const std::uint64_t share =
        std::min(room / kReadShare, tick_budget_.quantum() * kReadBytesPerWork);
    return wanted <= share ? wanted
                           : std::min<std::size_t>(wanted, std::max(share, kLeastReadBytes));
  }
  // Input that waits, of all conversations, in bytes of memory.
  std::uint64_t input_bytes() const { return input_bytes_; }
  // A conversation that has kept `before` now keeps `now`; returns `now`.
  std::size_t count_input(std::size_t before, std::size_t now) {
    input_bytes_ += now - before;
    return now;
  }

  TubeList& tube_list() { return tube_list_; }
  const TubeList& tube_list() const { return tube_list_; }

  // Sessions were answered since the last take_woken() while they were not at work themselves.
  bool has_woken() const { return !woken_.empty(); }
  // Swaps `sessions` with the list of those that were answered since the last call while they were
  // not at work themselves: their replies are to be sent, and they may go on. One may have closed
  // since.
  void take_woken(std::vector<SessionId>& sessions) {
    sessions.clear();
    sessions.swap(woken_);
  }

  // For conversations.
  void opened(SessionId session, Conversation& conversation);
  void closed(SessionId session);
  void count(const Command& command) { ++command_counts_[index_of(command)]; }
  void count(Counter counter) { ++counters_[static_cast<std::size_t>(counter)]; }

  // For who runs it: what its connections carry, and how long its turns took.
  void count_received(std::uint64_t bytes) { received_bytes_ += bytes; }
  void count_sent(std::uint64_t bytes) { sent_bytes_ += bytes; }
  void count_tick(Duration took) { turn_times_.add(took); }

  // For stats.
  std::uint64_t command_count(std::size_t index) const { return command_counts_[index]; }
  std::uint64_t counted(Counter counter) const {
    return counters_[static_cast<std::size_t>(counter)];
  }
  std::uint64_t total_connections() const { return total_connections_; }
  std::uint64_t refused_connections() const { return refused_connections_; }
  void count_refused_connection(std::uint64_t times = 1) { refused_connections_ += times; }
  const Identity& identity() const { return identity_; }
  CpuTimes cpu_times() const { return process_.cpu_times(); }
  std::uint64_t resident_bytes() const { return process_.resident_bytes(); }
  std::uint64_t open_descriptors() const { return process_.open_descriptors(); }
  std::uint64_t descriptor_limit() const { return process_.descriptor_limit(); }
  std::uint64_t received_bytes() const { return received_bytes_; }
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  HistogramView turn_times() const { return turn_times_.view(); }

  void fact(const Fact& fact) override;
  void notice(const engine::Notice& notice) override;

 private:
  static constexpr std::uint64_t kLeastReadBytes = 2048;
  // One read takes this part of the room that is left, at most.
  static constexpr std::uint64_t kReadShare = 64;
  // More than most commands have.
  static constexpr std::uint64_t kReadBytesPerWork = 256;

  engine::Engine engine_;
  ConversationLimits conversation_limits_;
  Time now_;
  bool draining_ = false;
  NullLog null_log_;
  FactLog* log_ = &null_log_;
  Duration recovery_{};
  std::vector<Conversation*> conversations_;  // by session
  std::vector<SessionId> woken_;
  TickBudget tick_budget_;
  std::uint64_t input_bytes_ = 0;
  TubeList tube_list_;
  std::array<std::uint64_t, kCommandCount> command_counts_{};
  std::array<std::uint64_t, kCounterCount> counters_{};
  std::uint64_t total_connections_ = 0;
  std::uint64_t refused_connections_ = 0;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  ShortTimes turn_times_;
  Identity identity_;
  Process process_;
};

}  // namespace tubed::commands
