// Service: the state that all conversations of a server share: the queue, the time, the counters.
//
// It owns the engine and takes what the engine emits: it passes facts to the log and notices to the
// conversations that wait. It does not know sockets. After each step the server asks for the
// sessions that a notice has answered (Conversations::take_notified) and sends their replies.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/conversations.h"
#include "commands/input_memory.h"
#include "commands/principal.h"
#include "commands/queue_clock.h"
#include "commands/service_host.h"
#include "commands/table.h"
#include "commands/test_hooks.h"
#include "commands/tick_budget.h"
#include "commands/tube_list_cache.h"
#include "engine/engine.h"
#include "facts/fact_log.h"
#include "facts/output.h"
#include "protocol/block.h"
#include "stats/counters.h"
#include "stats/process.h"
#include "stats/rows.h"

namespace tubed::commands {

// Bounds of one conversation.
struct ConversationLimits {
  std::uint32_t line_bytes = 224;           // a command line with its end [notes: Lines]
  std::uint64_t output_bytes = 1ULL << 20;  // replies not sent yet; with more, no command is run
  std::uint64_t input_memory = 1ULL << 28;  // input of all conversations that is not consumed yet
};

class Service final : public engine::Output {
 public:
  Service(const Limits& limits, stats::ProcessIdentity identity, stats::ProcessProbe process);

  // Begins a tick: now() and tick_time() do not change until the next tick. The engine does the
  // work that is due. `tick_time`: by the monotonic clock.
  void begin_tick(Time tick_time);
  // The time of the queue: tick_time(), except in test mode and in a cluster.
  Time now() const { return now_; }
  Time tick_time() const { return tick_time_; }
  // When the engine has work to do, by the monotonic clock. O(1).
  engine::Deadlines next_deadlines() const {
    if (clock_ != nullptr) [[unlikely]]
      return clock_->next_deadlines();
    return engine_->next_deadlines();
  }
  // The host outlives the service or is replaced before its end. A service has a ServiceHost of its
  // own until then.
  void set_host(ServiceHost& host) { host_ = &host; }
  ServiceHost& host() const { return *host_; }

  // True if the next tick removes flushed jobs. They wait while the log is congested.
  bool may_remove_pending() const { return engine_->has_removals(now_) && !log_->congested(); }

  engine::Engine& engine() { return *engine_; }
  const engine::Engine& engine() const { return *engine_; }

  // Where facts go: a NullLog unless another log is set, which outlives the service.
  void set_log(FactLog& log) { log_ = &log; }
  FactLog& log() { return *log_; }
  const FactLog& log() const { return *log_; }

  void set_limits(const Limits& limits, const ConversationLimits& conversation);
  const ConversationLimits& conversation_limits() const { return conversation_limits_; }

  // Replaces the policies of the settings, if they differ. O(tubes * patterns).
  void set_patterns(const std::vector<TubePattern>& patterns);

  bool draining() const { return draining_; }
  void set_draining(bool draining) { draining_ = draining; }
  // If `giving`, clients get jobs (Engine::set_giving()). Sessions that a notice has answered are
  // notified.
  void set_giving(bool giving);
  // Replaces the roles of the settings; their conversations have the new rights at once. If the
  // role of a waiting client no longer allows its reserve, the reply is DENIED; if it no longer
  // allows the tube of the job that the client waits for, NOT_FOUND. The caller then closes the
  // conversations of removed roles. O(roles^2 + conversations), O(waiting * watched * patterns).
  void set_roles(const std::vector<Role>& roles);
  Roles& roles() { return roles_; }

  TickBudget& tick_budget() { return tick_budget_; }

  // Test mode. The hooks outlive the service.
  void set_test_hooks(TestHooks& hooks) { clock_ = test_hooks_ = &hooks; }
  TestHooks* test_hooks() const { return test_hooks_; }
  // A clock for the queue, which outlives the service.
  void set_clock(QueueClock& clock) { clock_ = &clock; }
  // Sets the time of the queue, which is not before the last deadline that was advanced to.
  void set_now(Time now) { now_ = now; }
  // Replaces the queue by a new queue at the time `now`, which may be earlier, and sets all
  // counters to zero. `fill` gives the new queue its jobs before its sessions are opened. Each
  // conversation keeps its session, which uses and watches "default" and holds no job. A
  // conversation that waits in a reserve begins to wait again. No fact is emitted. O(jobs +
  // sessions).
  void replace_queue(Time now, const std::function<void(engine::Engine&)>& fill);
  // Conversations that a notice has answered while they were not running are notified.
  Conversations& conversations() { return conversations_; }
  const Conversations& conversations() const { return conversations_; }

  InputMemory& input() { return input_; }
  const InputMemory& input() const { return input_; }
  // How many of `wanted` bytes the next read of a client may bring.
  std::size_t read_bytes(std::size_t wanted) const {
    return input_.read_bytes(wanted, tick_budget_.quantum());
  }

  TubeListCache& tube_list_cache() { return tube_list_cache_; }
  const TubeListCache& tube_list_cache() const { return tube_list_cache_; }

  void count(const Command& command, std::uint64_t times = 1) {
    command_counts_[command.counter].count += times;
  }

  stats::ServerCounters& counters() { return counters_; }
  // Returns the current values of the rows of stats and of the metrics. O(1).
  stats::ServerState server_state() const;
  // Returns the block of stats, with the values at the time when it is written. The service
  // outlives it.
  protocol::Block stats_block() const;

  void fact(const Fact& fact) override;
  void begin_unit() override { log_->begin_unit(); }
  void end_unit() override { log_->end_unit(); }
  void notice(const engine::Notice& notice) override;
  void retired(const engine::Retirement& retirement) override;
  bool may_see(SessionId session, std::string_view tube) const override;

 private:
  void do_due_work();

  // Not inlined: their callers stay short outside of test mode.
  [[gnu::noinline]] void fact_in_test_mode(const Fact& fact);
  [[gnu::noinline]] void begin_tick_by_clock(Time tick_time);
  void clear_command_counts();

  std::optional<engine::Engine> engine_;  // never empty
  ConversationLimits conversation_limits_;
  Time now_;
  Time tick_time_;
  QueueClock* clock_ = nullptr;
  TestHooks* test_hooks_ = nullptr;
  bool draining_ = false;
  bool giving_ = true;
  Roles roles_;
  ServiceHost no_host_;
  ServiceHost* host_ = &no_host_;
  NullLog null_log_;
  FactLog* log_ = &null_log_;
  Conversations conversations_;
  TickBudget tick_budget_;
  InputMemory input_;
  TubeListCache tube_list_cache_;
  // The last element is for rows of test mode, and nothing reports it.
  std::array<stats::CommandCount, kCommandCount + 1> command_counts_;
  stats::ServerCounters counters_;
  stats::ProcessIdentity identity_;
  stats::ProcessProbe process_;
};

}  // namespace tubed::commands
