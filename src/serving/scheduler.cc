// The steps of a tick are numbered in scheduler.h.
#include "serving/scheduler.h"

#include "os/clock.h"

namespace tubed::serving {

Scheduler::Scheduler(loop::Loop& loop, commands::Service& service, Clients& clients, TickHost& host)
    : service_(service),
      clients_(clients),
      host_(host),
      tick_(
          loop, [this] { end_tick(); }, [this] { resume_deferred(); }),
      timers_(
          loop, [this] { begin_tick(); }, [this] { close_overdue(); }) {}

// Step 1.
void Scheduler::begin_tick() {
  if (in_tick_) return;
  in_tick_ = true;
  const Time now = os::monotonic_now();
  if (!frozen_) service_.begin_tick(now);
  // empty() is cheaper than two sizes.
  service_.tick_budget().begin(now, deferred_.empty() ? 0 : deferred_.size());
}

void Scheduler::mark_dirty(Client& client) {
  clients_.timeouts().touch(client, service_.tick_time());
  charge(client);
  dirty_.add(client);
}

void Scheduler::mark_all_dirty() {
  clients_.for_each([this](Client& client) { mark_dirty(client); });
}

// Charges the work for a client, and the sending of its replies at the end of the tick. Replies
// count as soon as they are made: a tick that has reached limits.output_memory makes no more, and
// its end sends some or closes the slowest reader.
void Scheduler::charge(Client& client) {
  const std::size_t replies = client.conversation().replies().size();
  clients_.count_output(client, replies);
  commands::TickBudget& budget = service_.tick_budget();
  budget.spend_visit(replies, os::monotonic_now);
  if (clients_.output_bytes() > clients_.output_memory()) budget.spend_all();
}

// Steps 3 and 4.
void Scheduler::end_tick() {
  if (!in_tick_ && !winding_down_) return;
  FactLog& log = service_.log();
  const bool log_has_more = log.flush();
  const Lsn flushed = log.appended();
  if (std::exchange(log_advanced_, false)) {
    gated_.take_all(clients_, [this](Client& client) { serve(client); });
  }
  serve_clients();
  pause_input(input_must_wait());
  if (!congested_.empty()) resume_congested();
  arm_timers();
  // Clients that were closed have given jobs back after the flush.
  const bool appended_since = log.appended() != flushed;
  tick_.set_deferred_work(log_has_more || appended_since ||
                          (!deferred_.empty() && !input_paused_) || service_.may_remove_pending());
  if (in_tick_ && !frozen_) host_.tick_ended();
  in_tick_ = false;
}

void Scheduler::serve_clients() {
  do {
    do {
      service_.conversations().take_notified(notified_);
      for (const SessionId session : notified_) {
        Client* client = clients_.find(session);
        if (client == nullptr) continue;
        clients_.timeouts().touch(*client, service_.tick_time());
        serve(*client);
      }
      dirty_.take_all(clients_, [this](Client& client) { serve(client); });
    } while (clients_.shed_output() || service_.conversations().has_notified() || !dirty_.empty());
  } while (winding_down_ && host_.complete_tick());
}

// Sends the replies that may be sent. Then closes the client, defers it, or lets it wait.
void Scheduler::serve(Client& client) {
  const bool wrote = client.write(service_.log());
  if (client.done()) return clients_.close_done(client);
  clients_.timeouts().update(client, wrote, client.take_received(), service_.tick_time());
  clients_.count_output(client, client.conversation().replies().size());
  if (client.conversation().waits_for_log()) {
    congested_.add(client);
  } else if (client.conversation().can_resume()) {
    defer(client);
  }
  if (client.is_gated()) gated_.add(client);
  if (client.is_input_paused()) paused_.add(client);
  client.update_interest();
}

// True if too many replies wait for the disk. A congested log is no reason to pause: each client is
// read from until its next command may emit a fact.
bool Scheduler::input_must_wait() const {
  return !gated_.empty() && clients_.output_bytes() > clients_.output_memory() / 2;
}

void Scheduler::pause_input(bool pause) {
  const bool was_paused = std::exchange(input_paused_, pause);
  if (pause) return;
  if (was_paused) clients_.timeouts().restart_input(service_.tick_time());
  paused_.take_all(clients_, [](Client& client) { client.update_interest(); });
}

// Commands that wait for the log continue in the next tick, once it takes facts again.
void Scheduler::resume_congested() {
  if (service_.log().congested()) return;
  congested_.take_all(clients_, [this](Client& client) { defer(client); });
}

// Step 5.
void Scheduler::resume_deferred() {
  begin_tick();
  deferred_.resume(clients_,
                   [this] { return !service_.tick_budget().is_spent() && takes_input(); });
}

template <class Condition>
void DeferredClients::resume(const Clients& clients, const Condition& may_continue) {
  const auto resume_first = [&](ClientQueue& queue, std::size_t& left) {
    if (left == 0) return;
    --left;
    if (Client* const client = queue.take_first(clients)) client->resume();
  };
  std::size_t light = light_.size();
  std::size_t heavy = heavy_.size();
  while (light + heavy > 0) {
    if (!may_continue()) return;
    resume_first(light_, light);
    if (heavy > 0 && !may_continue()) return;
    resume_first(heavy_, heavy);
  }
}

void Scheduler::log_advanced() {
  begin_tick();
  log_advanced_ = true;
}

Time Scheduler::log_time() {
  begin_tick();
  return frozen_ ? os::monotonic_now() : service_.tick_time();
}

void Scheduler::close_overdue() {
  begin_tick();
  clients_.close_overdue(input_paused_);
}

void Scheduler::arm_timers() {
  if (frozen_) return timers_.log.arm(service_.log().next_deadline(), os::monotonic_now());
  const Time now = service_.tick_time();
  timers_.arm(service_.next_deadlines(), now);
  timers_.clients.arm(clients_.timeouts().next_deadline(), now);
  timers_.log.arm(service_.log().next_deadline(), now);
}

}  // namespace tubed::serving
