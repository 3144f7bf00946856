#include "commands/service.h"

#include <algorithm>

#include "base/planted.h"
#include "commands/conversation.h"
#include "stats/stats.h"

namespace tubed::commands {

Service::Service(const Limits& limits, stats::ProcessIdentity identity, stats::ProcessProbe process)
    : engine_(std::in_place, limits),
      now_(identity.started),
      tick_time_(identity.started),
      tick_budget_(limits.work_per_turn),
      identity_(std::move(identity)),
      process_(std::move(process)) {
  clear_command_counts();
}

void Service::clear_command_counts() {
  std::ranges::copy(command_counts(), command_counts_.begin());
}

void Service::begin_tick(Time tick_time) {
  if (clock_ != nullptr) [[unlikely]]
    return begin_tick_by_clock(tick_time);
  now_ = std::max(now_, tick_time);
  tick_time_ = now_;
  do_due_work();
}

void Service::begin_tick_by_clock(Time tick_time) {
  tick_time_ = std::max(tick_time_, tick_time);
  const auto now = clock_->tick_began(tick_time_);
  if (!now) return;
  now_ = *now;
  do_due_work();
}

void Service::do_due_work() {
  if (engine_->next_deadlines().due(now_)) engine_->advance(now_, *this);
  if (may_remove_pending()) [[unlikely]]
    engine_->remove_pending(now_, *log_, *this);  // to the log itself: no event of test mode
}

void Service::replace_queue(Time now, const std::function<void(engine::Engine&)>& fill) {
  const Limits limits = engine_->limits();
  const std::vector<TubePattern> patterns = engine_->queries().policies().patterns();
  engine_.emplace(limits);
  engine_->set_patterns(now, patterns, *this);
  if (!giving_) engine_->set_giving(false, now, *this);
  now_ = now;
  tube_list_cache_ = TubeListCache();
  clear_command_counts();
  counters_ = stats::ServerCounters();
  fill(*engine_);
  // The same ids, although a new engine gives them in order.
  const auto conversations = conversations_.all();
  for (std::size_t id = 0; id < conversations.size(); ++id) engine_->open();
  for (std::size_t id = conversations.size(); id-- > 0;) {
    if (conversations[id] == nullptr) {
      engine_->close(static_cast<SessionId>(id), now_, *this);
    } else {
      counters_.count(stats::Counter::connection);
    }
  }
  conversations_.restart();
}

void Service::set_limits(const Limits& limits, const ConversationLimits& conversation) {
  engine_->set_limits(limits);
  conversation_limits_ = conversation;
  input_.set_bound(conversation.input_memory);
  tick_budget_.set_most(limits.work_per_turn);
}

void Service::set_patterns(const std::vector<TubePattern>& patterns) {
  if (patterns != engine_->queries().policies().patterns())
    engine_->set_patterns(now_, patterns, *this);
}

void Service::set_giving(bool giving) {
  if (std::exchange(giving_, giving) != giving) engine_->set_giving(giving, now_, *this);
}

void Service::set_roles(const std::vector<Role>& roles) {
  roles_.set(roles);
  conversations_.rights_changed();
}

stats::ServerState Service::server_state() const {
  return {.limits = engine_->limits(),
          .counters = counters_,
          .commands = std::span(command_counts_).first(kCommandCount),
          .identity = identity_,
          .process = process_,
          .queue = engine_->info(),
          .log = log_->stats(),
          .cpu = process_.cpu_times(),
          .uptime = (test_hooks_ != nullptr ? now_ : tick_time_) - identity_.started,
          .input_bytes = input_.bytes(),
          .draining = draining_,
          .cluster = host_->cluster()};
}

protocol::Block Service::stats_block() const {
  return {[this](protocol::BlockSink& block) { stats::write_server_stats(server_state(), block); }};
}

void Service::fact(const Fact& fact) {
  if (test_hooks_ != nullptr) [[unlikely]]
    return fact_in_test_mode(fact);
  log_->fact(fact);
}

void Service::fact_in_test_mode(const Fact& fact) {
  test_hooks_->fact(fact);
  log_->fact(fact);
}

void Service::retired(const engine::Retirement& retirement) {
  if (test_hooks_ != nullptr) test_hooks_->retired(retirement);
}

bool Service::may_see(SessionId session, std::string_view tube) const {
  const Principal* principal = conversations_.at(session).principal();
  const ActiveRole* role = principal == nullptr ? nullptr : principal->role();
  return role == nullptr || may_use(role->role(), tube) || TUBED_PLANTED(wait_follows_its_job);
}

void Service::notice(const engine::Notice& notice) {
  if (test_hooks_ != nullptr) [[unlikely]]
    test_hooks_->notice(notice);
  if (TUBED_PLANTED(second_notice_is_dropped) && conversations_.has_notified()) return;
  Conversation* conversation = conversations_.all()[notice.session];
  if (TUBED_PLANTED(reply_to_another_client)) {
    for (Conversation* other : conversations_.all()) {
      if (other != nullptr && other->waiting()) conversation = other;
    }
  }
  TUBED_ASSERT(conversation != nullptr);
  const bool is_notified = conversation->answer(notice) && !TUBED_PLANTED(wake_up_is_lost);
  if (is_notified) conversations_.notify(conversation->session());
}

}  // namespace tubed::commands
