// The ticks of the server: what begins and ends them, and which client is served when.
//
// Events fill queues of clients (client_queue.h), which the end of the tick empties. Clients that
// were touched are dirty: they get their replies, and are closed, deferred, or wait for more.
// Clients whose replies wait for the journal are gated; journal_moved() has them looked after
// again. Clients with more work than the tick has room for are deferred, and served in the next
// tick before its events.
#include "os/clock.h"
#include "os/process.h"
#include "server/server.h"

namespace tubed::server {

using os::Log;

namespace {

// What jobs must once have taken for memory to be given back.
constexpr std::uint64_t kLongQueueBytes = 1 << 20;

}  // namespace

void Server::begin_tick() {
  if (in_tick_) return;
  in_tick_ = true;
  const Time now = os::monotonic_now();
  // When the queue is closed its time stands still.
  if (!queue_closed()) service_.begin_tick(now);
  // has_deferred() is cheaper than two sizes.
  const std::size_t waiting = has_deferred() ? deferred_.size() + deferred_light_.size() : 0;
  service_.tick_budget().begin(now, waiting);
}

void Server::look_after(Client& client) {
  patience_.active(client, service_.now());
  charge_tick(client);
  dirty_.add(client);
}

void Server::end_tick() {
  if (!in_tick_ && !stopping()) return;
  // The tick's facts are written first: the disk works while replies are sent.
  FactLog& log = service_.log();
  const bool log_has_more = log.flush();
  const Lsn flushed = log.appended();
  if (std::exchange(journal_moved_, false)) let_gated_through();
  // To close one client may answer another.
  for (;;) {
    service_.take_woken(woken_);
    for (const SessionId session : woken_) {
      Client* client = client_of(session);
      if (client == nullptr) continue;
      patience_.active(*client, service_.now());
      attend(*client);
    }
    dirty_.take_all(find_client_, [this](Client& client) { attend(client); });
    const bool shed = buffered_output() > settings_.output_memory && shed_output();
    if (service_.draining() && is_drained()) {
      log_.info("drained");
      end_drained();
    }
    if (shed || service_.has_woken() || !dirty_.empty()) continue;
    if (!stopping() || !dismiss_waiting()) break;
  }
  if (stopping() && client_count_ == 0) close_queue();
  hold_input(input_must_wait());
  if (!congested_.empty()) resume_congested();
  give_back_memory();
  arm_timers();
  // Clients that were closed meanwhile have given jobs back.
  const bool appended_since = log.appended() != flushed;
  turn_.set_deferred_work(log_has_more || appended_since || (has_deferred() && !input_held_));
  // Nobody else asks for it, and the clock costs something each turn.
  if (endpoint_ != nullptr && in_tick_ && !queue_closed()) {
    service_.counters().add_tick(os::monotonic_now() - service_.now());
  }
  in_tick_ = false;
}

// Sends what there is to send, and closes, goes on later, or waits for more.
void Server::attend(Client& client) {
  if (stopping() && !client.finishing() && may_finish(client)) client.finish();
  const bool took = client.write(service_.log());
  if (client.done()) return close(client, "done");
  patience_.moved(client, took, client.take_received(), service_.now());
  count_output(client, client.conversation().replies().size());
  if (client.conversation().waits_for_log()) {
    congested_.add(client);
  } else if (client.conversation().can_resume()) {
    defer(client);
  }
  if (client.is_gated()) gated_.add(client);
  if (client.is_held_back()) held_.add(client);
  client.update_interest();
}

// Sends replies that waited for the journal, up to what is durable now.
void Server::let_gated_through() {
  gated_.take_all(find_client_, [this](Client& client) { attend(client); });
}

// Too many replies cannot leave before the disk has done its work. A congested journal is no
// reason: each client is read from until its next command may emit a fact.
bool Server::input_must_wait() const {
  return !gated_.empty() && output_bytes_ > settings_.output_memory / 2;
}

// Commands that waited for the journal go on in the next tick, once it takes more.
void Server::resume_congested() {
  if (service_.log().congested()) return;
  congested_.take_all(find_client_, [this](Client& client) { defer(client); });
}

void Server::hold_input(bool hold) {
  const bool held = std::exchange(input_held_, hold);
  if (hold) return;
  if (held) patience_.excuse_senders(service_.now());
  held_.take_all(find_client_, [](Client& client) { client.update_interest(); });
}

void Server::journal_moved() {
  begin_tick();
  journal_moved_ = true;
}

void Server::journal_failed() {
  journal_failed_ = true;
  loop_.stop();
}

Time Server::journal_time() {
  begin_tick();
  return queue_closed() ? os::monotonic_now() : service_.now();
}

void Server::count_output(Client& client, std::size_t bytes) {
  output_bytes_ += bytes - std::exchange(client.counted_output, bytes);
}

// Replies that no client takes hold memory, and bodies of jobs that are long deleted: for all
// clients together there is a bound, and the slowest client is closed.
// True if one was closed.
bool Server::shed_output() {
  bool closed = false;
  while (buffered_output() > settings_.output_memory) {
    Client* slowest = patience_.slowest_taker();
    if (slowest == nullptr) break;
    closed = true;
    log_.limited(Log::Level::warning, service_.now(), "closing a client",
                 {{"reason", "limits.output_memory"}});
    service_.counters().count(stats::Counter::client_output_memory);
    close(*slowest, "output");
  }
  return closed;
}

// Counts what a client was just served with, and what the tick's end is to send. Replies count as
// soon as they are made: no more are made in a tick that has reached the bound, and its end sends
// some or closes the slowest client.
void Server::charge_tick(Client& client) {
  const std::size_t replies = client.conversation().replies().size();
  count_output(client, replies);
  commands::TickBudget& budget = service_.tick_budget();
  budget.spend_visit(replies, os::monotonic_now);
  if (output_bytes_ > settings_.output_memory) budget.spend_all();
}

void Server::defer(Client& client) {
  (client.asks_little() ? deferred_light_ : deferred_).add(client);
}

// Each client that was deferred has one turn, as far as the tick's budget goes; the others are the
// first in the next tick. Clients that ask for little take turns with the others, so that they do
// not wait for all of them.
void Server::serve_deferred() {
  begin_tick();
  std::size_t light = deferred_light_.size();
  std::size_t heavy = deferred_.size();
  while (light + heavy > 0) {
    if (light > 0) {
      --light;
      if (!serve_next(deferred_light_)) return;
    }
    if (heavy > 0) {
      --heavy;
      if (!serve_next(deferred_)) return;
    }
  }
}

// False: the tick is over for them. Precondition: the queue is not empty.
bool Server::serve_next(ClientQueue& queue) {
  if (service_.tick_budget().is_spent() || !takes_input()) return false;
  if (Client* const client = queue.take_first(find_client_)) client->go_on();
  return true;
}

// A queue that was long and is short: bodies and arrays that have gone are still in the heap.
void Server::give_back_memory() {
  const std::uint64_t now = service_.engine().memory_bytes();
  most_job_memory_ = std::max(most_job_memory_, now);
  if (most_job_memory_ < kLongQueueBytes || now > most_job_memory_ / 8) return;
  os::give_back_heap();
  most_job_memory_ = now;
}

void Server::arm_timers() {
  if (queue_closed()) {
    const Time real = os::monotonic_now();
    journal_timer_.arm(service_.log().next_deadline(), real);
    return;
  }
  const engine::Deadlines next = service_.engine().next_deadlines();
  const Time now = service_.now();
  delay_timer_.arm(next.delay, now);
  ttr_timer_.arm(next.closing ? now : next.ttr, now);
  pause_timer_.arm(next.pause, now);
  patience_timer_.arm(patience_.next_deadline(), now);
  journal_timer_.arm(service_.log().next_deadline(), now);
}

void Server::close_impatient() {
  begin_tick();
  if (input_held_) patience_.excuse_senders(service_.now());
  for (const auto& [client, reason] : patience_.overdue(service_.now())) {
    const bool idle = reason == Patience::Reason::idle;
    if (idle && input_held_) {
      patience_.active(*client, service_.now());  // its input may wait in the kernel
      continue;
    }
    log_.limited(Log::Level::info, service_.now(), "closing a client",
                 {{"reason", idle ? "timeouts.idle" : "timeouts.stall"}});
    service_.counters().count(idle ? stats::Counter::client_idle : stats::Counter::client_stalled);
    close(*client, idle ? "idle" : "stall");
  }
}

}  // namespace tubed::server
