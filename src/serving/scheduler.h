// Scheduler: the ticks of the server, and which client is served when.
//
// A tick goes through these steps:
//
//   1. begin_tick(). The first event of a tick (a readable client, a timer, a commit that has
//      ended) reads the clock, and the time does not change until the tick ends. The engine does
//      what is due, and the tick's budget of work is set.
//   2. Events change the queue. A client that has been read from marks itself dirty. A client that
//      comes when the budget is spent is deferred.
//   3. end_tick(). The facts of the tick are flushed to the log first: the disk works while replies
//      are sent. Then each client that was notified by the engine or is dirty is served: its
//      replies are sent, and it is closed, deferred, or waits for more. Closing a client gives its
//      jobs back and may notify others, so this repeats until no client is left.
//   4. The host decides what follows (drain, stop). The timers are armed for the next deadlines.
//   5. Clients that were deferred run in a tick of their own, before the loop polls for events. An
//      iteration of the loop has at most two ticks, one before the poll and one after it.
//
// A client waits in at most one place for each reason, and each reason is a queue (client_queue.h):
// `dirty` until the end of the tick, `gated` until the log is durable, `paused` until input is
// taken again, `congested` until the log takes facts again, `deferred` until its next quantum.
#pragma once

#include <cstdint>
#include <vector>

#include "commands/service.h"
#include "loop/tick.h"
#include "serving/client_queue.h"
#include "serving/clients.h"
#include "serving/deadline_timers.h"

namespace tubed::serving {

// The part of the server that the scheduler calls.
class TickHost {
 public:
  // Called when every client of this tick is served, while set_winding_down() is in force. True if
  // clients are dirty again, and are to be served in this tick.
  virtual bool complete_tick() = 0;
  // The tick is over.
  virtual void tick_ended() = 0;

 protected:
  ~TickHost() = default;
};

// Clients with work for later ticks. Clients whose last input was done in one quantum have a queue
// of their own that alternates with the other: a small command does not wait for a thousand large
// commands.
class DeferredClients {
 public:
  bool empty() const { return light_.empty() && heavy_.empty(); }
  // Closed clients included.
  std::size_t size() const { return light_.size() + heavy_.size(); }
  void add(Client& client) { (client.is_light() ? light_ : heavy_).add(client); }

  // Calls Client::resume() for each client that is deferred now, in order, until may_continue() is
  // false; the others are the first in the next tick. O(clients resumed).
  template <class Condition>
  void resume(const Clients& clients, const Condition& may_continue);

 private:
  ClientQueue light_{&QueuedIn::deferred};
  ClientQueue heavy_{&QueuedIn::deferred};
};

class Scheduler final : public ClientHost {
 public:
  // Everything that is passed by reference outlives the scheduler.
  Scheduler(loop::Loop& loop, commands::Service& service, Clients& clients, TickHost& host);

  void begin_tick() override;
  void mark_dirty(Client& client) override;
  bool takes_input() const override { return !input_paused_ && !input_must_wait(); }
  void defer(Client& client) override { deferred_.add(client); }

  // Serves all clients at the end of this tick.
  void mark_all_dirty();

  // While true, in a server that drains or stops, each tick ends with TickHost::complete_tick(),
  // even a tick without an event.
  void set_winding_down(bool winding_down) { winding_down_ = winding_down; }

  // The log's durable() has advanced, or it takes facts again.
  void log_advanced();
  // Returns the time of the tick, which begins if necessary; after freeze(), the time now.
  Time log_time();
  // Every client is closed and the log is being closed: the time of the queue no longer advances.
  void freeze() { frozen_ = true; }

 private:
  void end_tick();
  void serve_clients();
  void serve(Client& client);
  bool input_must_wait() const;
  void pause_input(bool pause);
  void resume_congested();
  void resume_deferred();
  void charge(Client& client);
  void close_overdue();
  void arm_timers();

  commands::Service& service_;
  Clients& clients_;
  TickHost& host_;
  bool in_tick_ = false;
  bool winding_down_ = false;
  bool frozen_ = false;
  bool log_advanced_ = false;
  bool input_paused_ = false;
  std::vector<SessionId> notified_;
  ClientQueue dirty_{&QueuedIn::dirty};
  ClientQueue gated_{&QueuedIn::gated};
  ClientQueue paused_{&QueuedIn::paused};
  ClientQueue congested_{&QueuedIn::congested};
  DeferredClients deferred_;
  loop::Tick tick_;
  DeadlineTimers timers_;
};

}  // namespace tubed::serving
