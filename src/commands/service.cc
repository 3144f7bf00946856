#include "commands/service.h"

#include <algorithm>

#include "commands/conversation.h"

namespace tubed::commands {

Service::Service(const Limits& limits, stats::Identity identity, stats::ProcessProbe process)
    : engine_(limits),
      now_(identity.started),
      tick_budget_(limits.work_per_turn),
      identity_(std::move(identity)),
      process_(std::move(process)) {}

void Service::begin_tick(Time now) {
  now_ = std::max(now_, now);
  if (engine_.next_deadlines().due(now_)) engine_.advance(now_, *this);
}

void Service::set_limits(const Limits& limits, const ConversationLimits& conversation) {
  engine_.set_limits(limits);
  conversation_limits_ = conversation;
  tick_budget_.set_most(limits.work_per_turn);
}

void Service::opened(SessionId session, Conversation& conversation) {
  if (session >= conversations_.size()) conversations_.resize(session + 1);
  conversations_[session] = &conversation;
  counters_.count(stats::Counter::connection);
}

void Service::closed(SessionId session) {
  conversations_[session] = nullptr;
}

stats::ServerState Service::server_state() const {
  return {.limits = engine_.limits(),
          .counters = counters_,
          .commands = command_counts_,
          .identity = identity_,
          .process = process_,
          .queue = engine_.info(),
          .log = log_->stats(),
          .cpu = process_.cpu_times(),
          .uptime = now_ - identity_.started,
          .input_bytes = input_bytes_,
          .draining = draining_};
}

void Service::fact(const Fact& fact) {
  log_->fact(fact);
}

void Service::notice(const engine::Notice& notice) {
  Conversation* conversation = conversations_[notice.session];
  TUBED_ASSERT(conversation != nullptr);
  if (conversation->answer(notice)) notified_.push_back(notice.session);
}

}  // namespace tubed::commands
