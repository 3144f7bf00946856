// EventLoop: waits for descriptors, signals and a timer, and calls the handler of each that is
// ready. One thread, epoll(7), level-triggered: a handler that leaves input unread is called again
// in the next tick.
//
// The owner decides when to stop: it calls run_once() until its work is done. Handlers may create
// and destroy watches, including their own; a watch that a handler destroys gets no call for an
// event of the same tick.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/epoll.h>

#include "base/result.h"
#include "base/time.h"
#include "os/descriptor.h"

namespace tubed::client {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// Waits until one of `events` of poll(2), an error or a hang-up occurs on one descriptor. Returns
// false at the timeout; Duration::max() waits without limit. Continues after signals. The Error has
// the text of errno, which is still set.
Result<bool> wait_for(int descriptor, short events, Duration timeout);

class EventLoop {
 public:
  struct Ready {
    bool readable = false;  // also if the peer has closed, or the descriptor has an error
    bool writable = false;
    bool hung_up = false;
  };
  // An Error ends the tick and is returned by run_once().
  using Handler = std::function<Result<void>(Ready)>;

  // Keeps a descriptor registered. Destroy or reset it before the descriptor is closed.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept
        : loop_(std::exchange(other.loop_, nullptr)), index_(other.index_) {}
    Watch& operator=(Watch&& other) noexcept {
      std::swap(loop_, other.loop_);
      std::swap(index_, other.index_);
      return *this;
    }
    ~Watch() { reset(); }

    explicit operator bool() const { return loop_ != nullptr; }
    void reset();
    // If `wanted`, the handler is also called when the descriptor accepts output; initially it is
    // not.
    Result<void> watch_writable(bool wanted);

   private:
    friend class EventLoop;
    Watch(EventLoop& loop, std::size_t index) : loop_(&loop), index_(index) {}

    EventLoop* loop_ = nullptr;
    std::size_t index_ = 0;
  };

  static Result<std::unique_ptr<EventLoop>> create();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `handler` when `descriptor` has input. The loop must outlive the watch.
  Result<Watch> watch(int descriptor, Handler handler);
  // Calls the timer's handler once `due` has passed; no value disarms the timer. Costs a system
  // call only if `due` differs from the last call. Exact to the kernel's timer resolution.
  Result<void> set_timer(std::optional<TimePoint> due);
  void on_timer(std::function<Result<void>()> handler) { timer_handler_ = std::move(handler); }

  // One tick: wait(), then dispatch(). Returns false if nothing was ready.
  Result<bool> run_once(std::optional<TimePoint> until);
  // Waits until a watch is ready or `until` has passed, never earlier but up to a millisecond
  // later. Returns false if nothing is ready. A signal that is not watched ends the wait early.
  Result<bool> wait(std::optional<TimePoint> until);
  // Calls the handlers for what the last wait() has found.
  Result<void> dispatch();

 private:
  struct Entry {
    int descriptor = -1;
    std::uint32_t generation = 0;  // distinguishes the entry from a later entry with the same index
    std::shared_ptr<const Handler> handler;  // shared with the running call
  };

  EventLoop(os::Descriptor epoll, os::Descriptor timer);

  Result<void> control(int operation, std::size_t index, std::uint32_t events);
  Result<void> call_handler(std::uint64_t key, std::uint32_t events);
  void remove(std::size_t index);

  os::Descriptor epoll_;
  os::Descriptor timer_;
  std::function<Result<void>()> timer_handler_;
  std::optional<TimePoint> armed_;
  std::deque<Entry> entries_;  // a deque, because references must stay valid
  std::vector<std::size_t> free_;
  std::vector<epoll_event> events_;  // room for one tick
  std::size_t ready_ = 0;            // number of events found by the last wait()
  Watch timer_watch_;                // destroyed first: it removes its entry
};

// Signals as input of an event loop: blocks them and reads them from a signalfd(2).
class SignalInput {
 public:
  static Result<SignalInput> block(std::initializer_list<int> signals);

  int descriptor() const { return descriptor_.number(); }
  // The next signal; no value if no signal is pending. Does not wait.
  std::optional<int> take();
  // The process's mask before block().
  const sigset_t& mask_before() const { return mask_before_; }
  // Drops pending signals and unblocks: the next signal has its usual effect.
  void unblock();

 private:
  SignalInput() = default;

  sigset_t signals_{};
  sigset_t mask_before_{};
  os::Descriptor descriptor_;
};

// SIGINT and SIGTERM as a flag, for loops that check it between two steps. The first signal sets
// the flag, the second ends the process. A signal that the parent ignores stays ignored.
void set_flag_on_stop_signals();
bool stop_requested();
// Waits until `descriptor` has input or is at its end. Returns false if a stop signal comes first,
// or came before. Precondition: set_flag_on_stop_signals() was called.
Result<bool> wait_for_input_or_stop(int descriptor);

}  // namespace tubed::client
