// Each watch is an entry in a vector. epoll stores the entry's index and generation with the
// descriptor. A handler that destroys a watch increments the generation; an event of the same tick
// for the old watch is recognized by it and skipped. The timer is a timerfd in the same epoll set;
// setting it to the same time again costs no system call.
#include "client/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/system_error.h"

namespace tubed::client {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kEventsPerTick = 256;
// poll() and epoll_wait() take milliseconds as int.
constexpr milliseconds kMaxWait = std::chrono::hours(24);

// An entry's generation and index, as epoll returns them.
std::uint64_t key_of(std::uint32_t generation, std::size_t index) {
  return std::uint64_t{generation} << 32 | index;
}

volatile std::sig_atomic_t stop_signal_seen = 0;
// An eventfd that is readable after a stop signal, which ends a wait without a race; -1: none.
volatile std::sig_atomic_t stop_event = -1;

void see_stop_signal(int) {
  const int before = errno;
  stop_signal_seen = 1;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_event, &one, sizeof one);
  errno = before;
}

}  // namespace

Result<bool> wait_for(int descriptor, short events, Duration timeout) {
  pollfd polled{.fd = descriptor, .events = events, .revents = 0};
  const bool forever = timeout == Duration::max();
  const TimePoint end = forever ? TimePoint::max() : Clock::now() + timeout;
  for (;;) {
    auto wait = kMaxWait;
    if (!forever) {
      const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
      wait = std::clamp(left, milliseconds(0), kMaxWait);
    }
    const int ready = ::poll(&polled, 1, static_cast<int>(wait.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return system_error("cannot wait");
    if (ready == 0 && !forever && Clock::now() >= end) return false;
  }
}

void EventLoop::Watch::reset() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(index_);
}

Result<void> EventLoop::Watch::watch_writable(bool wanted) {
  return loop_->control(EPOLL_CTL_MOD, index_, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

EventLoop::EventLoop(os::Descriptor epoll, os::Descriptor timer)
    : epoll_(std::move(epoll)), timer_(std::move(timer)), events_(kEventsPerTick) {}

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  os::Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  os::Descriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !timer) return system_error("no epoll or timer");
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(timer)));
  const auto fire = [loop = loop.get()](Ready) -> Result<void> {
    // An expired timerfd stays readable until it is set again.
    loop->armed_ = TimePoint::min();
    return loop->timer_handler_ ? loop->timer_handler_() : Result<void>();
  };
  loop->timer_watch_ = TRY(loop->watch(loop->timer_.number(), fire));
  return loop;
}

Result<EventLoop::Watch> EventLoop::watch(int descriptor, Handler handler) {
  std::size_t index = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Entry& entry = entries_[index];
  entry.descriptor = descriptor;
  entry.handler = std::make_shared<const Handler>(std::move(handler));
  if (auto added = control(EPOLL_CTL_ADD, index, EPOLLIN); !added) {
    entry.handler.reset();
    free_.push_back(index);
    return std::move(added).error();
  }
  return Watch(*this, index);
}

Result<void> EventLoop::control(int operation, std::size_t index, std::uint32_t events) {
  const Entry& entry = entries_[index];
  epoll_event event{};
  event.events = events;
  event.data.u64 = key_of(entry.generation, index);
  if (::epoll_ctl(epoll_.number(), operation, entry.descriptor, &event) == 0) return {};
  return system_error("cannot watch a descriptor");
}

void EventLoop::remove(std::size_t index) {
  Entry& entry = entries_[index];
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, entry.descriptor, nullptr);
  ++entry.generation;
  entry.handler.reset();
  free_.push_back(index);
}

Result<void> EventLoop::set_timer(std::optional<TimePoint> due) {
  if (due == armed_) return {};
  itimerspec when{};  // zero disarms
  if (due) {
    const auto since = std::chrono::nanoseconds(due->time_since_epoch());
    when.it_value.tv_sec = static_cast<time_t>(since.count() / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(since.count() % 1'000'000'000);
  }
  if (::timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) {
    return system_error("cannot set a timer");
  }
  armed_ = due;
  return {};
}

Result<bool> EventLoop::run_once(std::optional<TimePoint> until) {
  const bool ready = TRY(wait(until));
  TRY(dispatch());
  return ready;
}

Result<bool> EventLoop::wait(std::optional<TimePoint> until) {
  int timeout = -1;
  if (until) {
    const TimePoint now = Clock::now();
    const auto left =
        *until > now ? std::chrono::ceil<milliseconds>(*until - now) : milliseconds(0);
    timeout = static_cast<int>(std::min(left, kMaxWait).count());
  }
  const int ready =
      ::epoll_wait(epoll_.number(), events_.data(), static_cast<int>(events_.size()), timeout);
  if (ready < 0 && errno != EINTR) return system_error("cannot wait");
  ready_ = static_cast<std::size_t>(std::max(ready, 0));
  return ready_ > 0;
}

Result<void> EventLoop::dispatch() {
  for (std::size_t i = 0; i < ready_; ++i)
    TRY(call_handler(events_[i].data.u64, events_[i].events));
  return {};
}

Result<void> EventLoop::call_handler(std::uint64_t key, std::uint32_t events) {
  const auto index = static_cast<std::size_t>(key & UINT32_MAX);
  const Entry& entry = entries_[index];
  if (key_of(entry.generation, index) != key) return {};  // removed earlier in this tick
  const auto handler = entry.handler;
  return (*handler)({.readable = (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0,
                     .writable = (events & EPOLLOUT) != 0,
                     .hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0});
}

Result<SignalInput> SignalInput::block(std::initializer_list<int> signals) {
  SignalInput input;
  sigemptyset(&input.signals_);
  for (const int number : signals) sigaddset(&input.signals_, number);
  const int error = ::pthread_sigmask(SIG_BLOCK, &input.signals_, &input.mask_before_);
  input.descriptor_ = os::Descriptor(::signalfd(-1, &input.signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (error == 0 && input.descriptor_) return input;
  return system_error("cannot wait for signals");
}

std::optional<int> SignalInput::take() {
  signalfd_siginfo signal{};
  if (::read(descriptor(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

void SignalInput::unblock() {
  const timespec no_wait{};
  while (::sigtimedwait(&signals_, nullptr, &no_wait) > 0) continue;
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

// The eventfd stays open until the process ends.
void set_flag_on_stop_signals() {
  if (stop_event < 0) stop_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = see_stop_signal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

bool stop_requested() {
  return stop_signal_seen != 0;
}

Result<bool> wait_for_input_or_stop(int descriptor) {
  std::array<pollfd, 2> polled{{{.fd = descriptor, .events = POLLIN, .revents = 0},
                                {.fd = stop_event, .events = POLLIN, .revents = 0}}};
  for (;;) {
    const int ready = ::poll(polled.data(), polled.size(), -1);
    if (ready < 0 && errno != EINTR) return system_error("cannot wait");
    if (stop_requested()) return false;
    if (ready > 0) return true;
  }
}

}  // namespace tubed::client
