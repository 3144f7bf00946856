// Service: the state that all conversations of a server share: the queue, the time, the counters.
//
// It owns the engine and takes what the engine emits: it passes facts to the log and notices to the
// conversations that wait. It does not know sockets. After each step the server asks for the
// sessions that a notice has answered (take_notified) and sends their replies.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands/principal.h"
#include "commands/queue_clock.h"
#include "commands/table.h"
#include "commands/test_hooks.h"
#include "commands/tick_budget.h"
#include "commands/tube_list_cache.h"
#include "engine/engine.h"
#include "engine/fact_log.h"
#include "engine/output.h"
#include "stats/cluster.h"
#include "stats/counters.h"
#include "stats/process.h"
#include "stats/rows.h"

namespace tubed::commands {

class Conversation;

// Bounds of one conversation.
struct ConversationLimits {
  std::uint32_t line_bytes = 224;           // a command line with its end [notes: Lines]
  std::uint64_t output_bytes = 1ULL << 20;  // replies not sent yet; with more, no command is run
  std::uint64_t input_memory = 1ULL << 28;  // input of all conversations that is not consumed yet
};

// The connection of a client, as the server describes it.
struct ClientDetails {
  std::string address = "-";  // one word
  Duration idle{};            // since its last input or the end of its last wait
};

class Service final : public engine::Output {
 public:
  Service(const Limits& limits, stats::Identity identity, stats::ProcessProbe process);

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
  // The function that knows the cluster of this node. Its state is valid until the next call. A
  // server that is in no cluster has no such function.
  using ClusterProbe = std::function<const stats::ClusterState*()>;
  void set_cluster_probe(ClusterProbe probe) { cluster_probe_ = std::move(probe); }
  // Null: the server is in no cluster.
  const stats::ClusterState* cluster() const { return cluster_probe_ ? cluster_probe_() : nullptr; }

  // True: the next tick removes flushed jobs. They wait while the log is congested.
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
  // Whether clients get jobs (Engine::set_giving()). Sessions that a notice has answered are
  // notified.
  void set_giving(bool giving);
  // A client asks for drain mode, or for its end: calls the function that is set, which calls
  // set_draining(); without one, sets it.
  using DrainRequest = std::function<void(bool draining, SessionId client)>;
  void on_drain_request(DrainRequest request) { drain_request_ = std::move(request); }
  void request_drain(bool draining, SessionId client) {
    if (drain_request_) return drain_request_(draining, client);
    draining_ = draining;
  }

  // Replaces the roles of the settings: their conversations have the new rights at once. A client
  // that waits in a reserve on a tube that its role may not use any more, or may not reserve any
  // more, is answered DENIED; if it waits for a job of such a tube, NOT_FOUND. The caller then
  // closes the conversations of removed roles. O(roles^2 + conversations), O(waiting * watched *
  // patterns).
  void set_roles(const std::vector<Role>& roles);
  // Null: there is no such role.
  ActiveRole* find_role(std::string_view name) { return roles_.find(name); }
  Roles& roles() { return roles_; }
  // The sessions whose role was removed. O(conversations) if a role was removed, else O(roles).
  std::vector<SessionId> sessions_of_removed_roles() const;

  // The function that knows the tokens. Without one, all are wrong.
  void on_authenticate(Authenticate authenticate) { authenticate_ = std::move(authenticate); }
  Authentication authenticate(std::string_view token, SessionId session) const {
    if (!authenticate_) return Refused{};
    return authenticate_(token, session);
  }
  // Called for each command that was denied, and each command of the family admin that runs, of
  // conversations with a principal.
  void on_audit(Audit audit) { audit_ = std::move(audit); }
  void audit(const AuditEvent& event) const {
    if (audit_) audit_(event);
  }

  // The function that knows the connections of clients. Without one, nothing is known.
  using DescribeClient = std::function<ClientDetails(SessionId)>;
  void on_describe_client(DescribeClient describe) { describe_client_ = std::move(describe); }
  ClientDetails describe_client(SessionId session) const {
    return describe_client_ ? describe_client_(session) : ClientDetails();
  }

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
  // The conversation of this session continues if its command has parked it.
  void unpark(SessionId session);
  Conversation& conversation(SessionId session) { return *conversations_[session]; }
  // By session; null: no open session has this id.
  std::span<Conversation* const> conversations() const { return conversations_; }

  // How many of `wanted` bytes the next read may bring: fewer if many clients wait, and fewer as
  // the stored input approaches input_memory. Above input_memory it is kLeastReadBytes. A
  // conversation stores the input of one read and an unfinished line at most, so input_memory +
  // connections * kLeastReadBytes bounds the stored input of all conversations.
  std::size_t read_bytes(std::size_t wanted) const {
    const std::uint64_t bound = conversation_limits_.input_memory;
    const std::uint64_t room = bound > input_bytes_ ? bound - input_bytes_ : 0;
    const std::uint64_t share =
        std::min(room / kReadShare, tick_budget_.quantum() * kReadBytesPerWork);
    return wanted <= share ? wanted
                           : std::min<std::size_t>(wanted, std::max(share, kLeastReadBytes));
  }
  // The memory of the stored input of all conversations, in bytes.
  std::uint64_t input_bytes() const { return input_bytes_; }
  // The stored input of a conversation changed from `before` to `now` bytes. Returns `now`.
  std::size_t count_input(std::size_t before, std::size_t now) {
    input_bytes_ += now - before;
    return now;
  }

  TubeListCache& tube_list_cache() { return tube_list_cache_; }
  const TubeListCache& tube_list_cache() const { return tube_list_cache_; }

  // True: take_notified() would return sessions.
  bool has_notified() const { return !notified_.empty(); }
  // Replaces `sessions` by those that a notice has answered since the last call while their
  // conversations were not running. The caller sends their replies and resumes them. A session may
  // have closed since, and its id may name another client.
  void take_notified(std::vector<SessionId>& sessions) {
    sessions.clear();
    sessions.swap(notified_);
  }

  // Called by conversations.
  void opened(SessionId session, Conversation& conversation);
  void closed(SessionId session);
  void count(const Command& command, std::uint64_t times = 1) {
    command_counts_[command.counter].count += times;
  }

  stats::ServerCounters& counters() { return counters_; }
  // The values of the rows of stats and of the metrics at this moment. O(1).
  stats::ServerState server_state() const;

  void fact(const Fact& fact) override;
  void begin_unit() override { log_->begin_unit(); }
  void end_unit() override { log_->end_unit(); }
  void notice(const engine::Notice& notice) override;
  void retired(const engine::Retirement& retirement) override;
  bool may_see(SessionId session, std::string_view tube) const override;

 private:
  // The removal is no event of test mode.
  void remove_pending() { engine_->remove_pending(now_, *log_, *this); }

  // Not inlined, so that their callers stay short outside of test mode.
  [[gnu::noinline]] void fact_in_test_mode(const Fact& fact);
  [[gnu::noinline]] void begin_tick_by_clock(Time tick_time);
  void clear_command_counts();

  static constexpr std::uint64_t kLeastReadBytes = 2048;
  // One read may bring this fraction of the room in input_memory at most.
  static constexpr std::uint64_t kReadShare = 64;
  // Most commands are shorter.
  static constexpr std::uint64_t kReadBytesPerWork = 256;

  std::optional<engine::Engine> engine_;  // never empty
  ConversationLimits conversation_limits_;
  Time now_;
  Time tick_time_;
  QueueClock* clock_ = nullptr;
  TestHooks* test_hooks_ = nullptr;
  bool draining_ = false;
  bool giving_ = true;
  DrainRequest drain_request_;
  Roles roles_;
  Authenticate authenticate_;
  Audit audit_;
  DescribeClient describe_client_;
  ClusterProbe cluster_probe_;
  NullLog null_log_;
  FactLog* log_ = &null_log_;
  std::vector<Conversation*> conversations_;  // by session
  std::vector<SessionId> notified_;
  TickBudget tick_budget_;
  std::uint64_t input_bytes_ = 0;
  TubeListCache tube_list_cache_;
  // One element more than the number of rows: nothing reports it, and rows of test mode count
  // there.
  std::array<stats::CommandCount, kCommandCount + 1> command_counts_;
  stats::ServerCounters counters_;
  stats::Identity identity_;
  stats::ProcessProbe process_;
};

}  // namespace tubed::commands
