// The functions of libuv that src/loop calls, on virtual time.
//
// The phases of an iteration and the order of handles within a phase follow libuv 1.44: timers by
// due time, then by start; idle and prepare handles, last started first; the poll phase; check
// handles; the callbacks of closed handles. Each task of the thread pool is done as a whole, at a
// virtual moment.
#include "tests/simulation/uv.h"

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <poll.h>
#include <uv.h>

#include "base/assert.h"
#include "tests/simulation/net.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

namespace {

// The cost of an iteration in which nothing happens. It ends loops that poll without waiting.
constexpr Duration kIteration = std::chrono::microseconds(3);

struct Loop;

struct Handle {
  uv_handle_t* handle;
  Loop* loop;
  bool active = false;
  bool raised = false;     // for an async handle or a signal
  int number = 0;          // descriptor or signal
  std::uint64_t made = 0;  // place in the order of all handles of the loop
  int events = 0;
  std::uint64_t due = 0;  // in milliseconds
  std::uint64_t start = 0;
  uv_timer_cb on_timer = nullptr;
  uv_idle_cb on_idle = nullptr;
  uv_prepare_cb on_prepare = nullptr;
  uv_check_cb on_check = nullptr;
  uv_async_cb on_async = nullptr;
  uv_signal_cb on_signal = nullptr;
  uv_poll_cb on_poll = nullptr;
};

struct TimerOrder {
  bool operator()(const Handle* one, const Handle* other) const {
    return std::pair(one->due, one->start) < std::pair(other->due, other->start);
  }
};

struct Loop {
  explicit Loop(World& of) : world(of), chance(of.seed(), "loop") {}

  World& world;
  Chance chance;
  std::uint64_t now = 0;  // in milliseconds, at the beginning of the iteration
  std::uint64_t starts = 0;
  std::uint64_t handles = 0;  // number of handles made
  std::set<Handle*, TimerOrder> timers;
  std::list<Handle*> idle, prepare, check, async, signals;
  std::map<int, Handle*> polls;
  std::vector<std::pair<uv_handle_t*, uv_close_cb>> closing;
  // The tasks of the thread pool by their number, which no other loop has.
  struct Work {
    uv_work_t* work;
    uv_work_cb called;
    uv_after_work_cb after;
  };
  std::map<std::uint64_t, Work> works;  // that have not begun
  std::list<Work> done;
  bool stopped = false;
  bool ended = false;
  bool called = false;  // note_call()
  std::function<void()> on_tick;

  void update() {
    using std::chrono::milliseconds;
    now = static_cast<std::uint64_t>(
        std::chrono::duration_cast<milliseconds>(world.now().time_since_epoch()).count());
  }
  bool alive() const {
    return !timers.empty() || !idle.empty() || !prepare.empty() || !check.empty() ||
           !async.empty() || !signals.empty() || !polls.empty() || !works.empty() ||
           !done.empty() || !closing.empty();
  }
};

Loop* current_loop = nullptr;
std::uint64_t all_ticks = 0;
std::uint64_t all_works = 0;

Loop& loop_of(const uv_loop_t* loop) {
  return *static_cast<Loop*>(loop->data);
}

Handle& of(const void* handle) {
  return *static_cast<Handle*>(static_cast<const uv_handle_t*>(handle)->u.reserved[0]);
}

Handle& add(uv_loop_t* loop, void* handle) {
  auto* const raw = static_cast<uv_handle_t*>(handle);
  auto* const made = new Handle{.handle = raw, .loop = &loop_of(loop)};
  made->made = made->loop->handles++;
  raw->loop = loop;
  raw->u.reserved[0] = made;
  return *made;
}

void start(std::list<Handle*>& list, Handle& handle) {
  if (std::exchange(handle.active, true)) return;
  list.push_front(&handle);
}

void stop(std::list<Handle*>& list, Handle& handle) {
  if (std::exchange(handle.active, false)) list.remove(&handle);
}

// Calls the handles that are in the list now, except handles that a call stops.
template <class Call>
void call_each(std::list<Handle*>& list, const Call& call) {
  for (Handle* handle : std::list<Handle*>(list)) {
    if (std::ranges::find(list, handle) != list.end()) call(handle);
  }
}

// Only the world makes real descriptors ready, so the result is the same in each run.
int events_of(const pollfd& watched) {
  const auto found = [&](int events) { return (watched.revents & events) != 0; };
  return (found(POLLIN | POLLHUP | POLLERR) ? UV_READABLE : 0) |
         (found(POLLOUT | POLLHUP | POLLERR) ? UV_WRITABLE : 0) |
         (found(POLLRDHUP | POLLHUP | POLLERR) ? UV_DISCONNECT : 0);
}

constexpr short kAllEvents = POLLIN | POLLOUT | POLLRDHUP;

int real_ready_for(int descriptor) {
  pollfd watched{.fd = descriptor, .events = kAllEvents, .revents = 0};
  ::poll(&watched, 1, 0);
  return events_of(watched);
}

// Returns the events UV_READABLE, UV_WRITABLE and UV_DISCONNECT of a descriptor, or -1 if its
// connection is lost.
int ready_for(int descriptor) {
  if (descriptor < Net::kFirstDescriptor) return real_ready_for(descriptor);
  Net& net = Net::current();
  if (net.is_listening(descriptor)) return net.has_waiting(descriptor) ? UV_READABLE : 0;
  const Endpoint* endpoint = net.find(descriptor);
  if (endpoint == nullptr) return 0;
  if (endpoint->lost()) return -1;
  int events = endpoint->has_room() ? UV_WRITABLE : 0;
  if (!endpoint->arrived().empty() || endpoint->ended()) events |= UV_READABLE;
  if (endpoint->ended()) events |= UV_DISCONNECT;
  return events;
}

bool is_ready(const Handle& handle) {
  const int ready = ready_for(handle.number);
  return ready < 0 || (ready & handle.events) != 0;
}

bool finish_work(Loop& loop) {
  bool any = false;
  while (!loop.done.empty()) {
    const Loop::Work work = loop.done.front();
    loop.done.pop_front();
    any = true;
    work.after(work.work, 0);
  }
  return any;
}

// The process has ended: its tasks have no further effect.
void cancel_work(Loop& loop) {
  for (const auto& [number, work] : std::exchange(loop.works, {})) loop.done.push_back(work);
  for (const Loop::Work& work : std::exchange(loop.done, {})) work.after(work.work, UV_ECANCELED);
}

bool call_raised(std::list<Handle*>& list) {
  bool any = false;
  call_each(list, [&any](Handle* handle) {
    if (!std::exchange(handle->raised, false)) return;
    any = true;
    if (handle->on_async != nullptr) {
      handle->on_async(reinterpret_cast<uv_async_t*>(handle->handle));
    } else {
      handle->on_signal(reinterpret_cast<uv_signal_t*>(handle->handle), handle->number);
    }
  });
  return any;
}

// Adds the ready real descriptors. Their numbers depend on the process that runs the simulation, so
// they must not decide anything.
void add_real(const Loop& loop, std::vector<int>& ready) {
  std::vector<pollfd> watched;
  std::vector<const Handle*> handles;
  for (const auto& [descriptor, handle] : loop.polls) {
    if (descriptor >= Net::kFirstDescriptor) break;
    watched.push_back({.fd = descriptor, .events = kAllEvents, .revents = 0});
  }
  if (watched.empty() || ::poll(watched.data(), watched.size(), 0) <= 0) return;
  for (const pollfd& one : watched) {
    const Handle* handle = loop.polls.at(one.fd);
    if ((events_of(one) & handle->events) != 0) handles.push_back(handle);
  }
  std::ranges::sort(handles, {}, &Handle::made);
  for (const Handle* handle : handles) ready.push_back(handle->number);
}

// Calls ready handles in any order, as the kernel may report them.
bool call_ready(Loop& loop) {
  std::vector<int> ready;
  const auto simulated = loop.polls.lower_bound(Net::kFirstDescriptor);
  for (auto poll = simulated; poll != loop.polls.end(); ++poll) {
    if (is_ready(*poll->second)) ready.push_back(poll->first);
  }
  add_real(loop, ready);
  for (std::size_t i = ready.size(); i > 1; --i)
    std::swap(ready[i - 1], ready[loop.chance.below(i)]);
  bool any = false;
  for (const int descriptor : ready) {
    const auto found = loop.polls.find(descriptor);
    if (found == loop.polls.end() || !is_ready(*found->second)) continue;
    Handle& handle = *found->second;
    auto* const raw = reinterpret_cast<uv_poll_t*>(handle.handle);
    any = true;
    const int events = ready_for(descriptor);
    if (events >= 0) {
      handle.on_poll(raw, 0, events & handle.events);
    } else {
      uv_poll_stop(raw);
      handle.on_poll(raw, UV_EBADF, 0);
    }
  }
  return any;
}

// The poll phase ends when something was called, a timer is due, or the phase does not wait.
void poll(Loop& loop, bool waits) {
  World& world = loop.world;
  for (;;) {
    world.run_due();
    if (loop.ended || world.failed()) return;
    Net::current().pump();
    loop.update();
    bool any = std::exchange(loop.called, false);
    any |= finish_work(loop);
    any |= call_raised(loop.async);
    any |= call_raised(loop.signals);
    any |= call_ready(loop);
    if (any || loop.stopped) return;
    if (!waits) return world.pass(kIteration);
    Time due = kNever;
    if (!loop.timers.empty()) due = Time(std::chrono::milliseconds((*loop.timers.begin())->due));
    const Time next = std::min(due, world.next());
    if (next == kNever) return world.fail("nothing will ever happen");
    world.pass_to(next);
    if (due <= world.next()) return;
  }
}

void run_timers(Loop& loop) {
  while (!loop.timers.empty() && (*loop.timers.begin())->due <= loop.now) {
    Handle* const timer = *loop.timers.begin();
    loop.timers.erase(loop.timers.begin());
    timer->active = false;
    timer->on_timer(reinterpret_cast<uv_timer_t*>(timer->handle));
  }
}

void close_handles(Loop& loop) {
  for (const auto& [handle, closed] : std::exchange(loop.closing, {})) {
    delete &of(handle);
    if (closed != nullptr) closed(handle);
  }
}

}  // namespace

void raise_signal(int number) {
  if (current_loop == nullptr) return;
  for (Handle* handle : current_loop->signals) {
    if (handle->number == number) handle->raised = true;
  }
}

void note_call() {
  if (current_loop != nullptr) current_loop->called = true;
}

std::uint64_t ticks() {
  return all_ticks;
}

void on_tick(std::function<void()> called) {
  if (current_loop != nullptr) current_loop->on_tick = std::move(called);
}

void end_loop() {
  if (current_loop != nullptr) current_loop->ended = true;
}

}  // namespace tubed::simulation

using namespace tubed::simulation;

extern "C" {

// --- The loop

int uv_loop_init(uv_loop_t* loop) {
  auto* const made = new Loop(World::current());
  loop->data = made;
  made->update();
  current_loop = made;
  return 0;
}

int uv_loop_close(uv_loop_t* loop) {
  Loop& closed = loop_of(loop);
  if (closed.alive()) return UV_EBUSY;
  if (current_loop == &closed) current_loop = nullptr;
  delete &closed;
  return 0;
}

int uv_run(uv_loop_t* raw, uv_run_mode mode) {
  Loop& loop = loop_of(raw);
  bool alive = loop.alive();
  while (alive && !loop.stopped && !loop.ended && !loop.world.failed()) {
    loop.update();
    run_timers(loop);
    call_each(loop.idle,
              [](Handle* one) { one->on_idle(reinterpret_cast<uv_idle_t*>(one->handle)); });
    call_each(loop.prepare,
              [](Handle* one) { one->on_prepare(reinterpret_cast<uv_prepare_t*>(one->handle)); });
    const bool waits = mode != UV_RUN_NOWAIT && !loop.stopped && loop.idle.empty() &&
                       loop.closing.empty() && loop.alive();
    poll(loop, waits);
    loop.update();
    if (loop.ended) break;
    call_each(loop.check,
              [](Handle* one) { one->on_check(reinterpret_cast<uv_check_t*>(one->handle)); });
    close_handles(loop);
    ++all_ticks;
    if (loop.on_tick) loop.on_tick();
    alive = loop.alive();
    if (mode != UV_RUN_DEFAULT) break;
  }
  loop.stopped = false;
  // The destructors of a process that has ended close their handles.
  if (loop.ended || loop.world.failed()) {
    cancel_work(loop);
    while (!loop.closing.empty()) close_handles(loop);
    return loop.alive() ? 1 : 0;
  }
  return alive ? 1 : 0;
}

void uv_stop(uv_loop_t* loop) {
  loop_of(loop).stopped = true;
}

void uv_close(uv_handle_t* raw, uv_close_cb closed) {
  Handle& handle = of(raw);
  Loop& loop = *handle.loop;
  if (handle.active) loop.timers.erase(&handle);
  for (auto* list : {&loop.idle, &loop.prepare, &loop.check, &loop.async, &loop.signals})
    list->remove(&handle);
  std::erase_if(loop.polls, [&](const auto& entry) { return entry.second == &handle; });
  handle.active = false;
  loop.closing.emplace_back(raw, closed);
}

// --- Handles

int uv_timer_init(uv_loop_t* loop, uv_timer_t* timer) {
  add(loop, timer);
  return 0;
}

int uv_timer_stop(uv_timer_t* timer) {
  Handle& handle = of(timer);
  if (std::exchange(handle.active, false)) handle.loop->timers.erase(&handle);
  return 0;
}

int uv_timer_start(uv_timer_t* timer, uv_timer_cb called, std::uint64_t timeout, std::uint64_t) {
  uv_timer_stop(timer);
  Handle& handle = of(timer);
  handle.on_timer = called;
  handle.due = handle.loop->now + timeout;
  handle.start = handle.loop->starts++;
  handle.active = true;
  handle.loop->timers.insert(&handle);
  return 0;
}

int uv_idle_init(uv_loop_t* loop, uv_idle_t* idle) {
  add(loop, idle);
  return 0;
}

int uv_idle_start(uv_idle_t* idle, uv_idle_cb called) {
  of(idle).on_idle = called;
  start(of(idle).loop->idle, of(idle));
  return 0;
}

int uv_idle_stop(uv_idle_t* idle) {
  stop(of(idle).loop->idle, of(idle));
  return 0;
}

int uv_prepare_init(uv_loop_t* loop, uv_prepare_t* prepare) {
  add(loop, prepare);
  return 0;
}

int uv_prepare_start(uv_prepare_t* prepare, uv_prepare_cb called) {
  of(prepare).on_prepare = called;
  start(of(prepare).loop->prepare, of(prepare));
  return 0;
}

int uv_check_init(uv_loop_t* loop, uv_check_t* check) {
  add(loop, check);
  return 0;
}

int uv_check_start(uv_check_t* check, uv_check_cb called) {
  of(check).on_check = called;
  start(of(check).loop->check, of(check));
  return 0;
}

int uv_async_init(uv_loop_t* loop, uv_async_t* async, uv_async_cb called) {
  Handle& handle = add(loop, async);
  handle.on_async = called;
  start(handle.loop->async, handle);
  return 0;
}

int uv_async_send(uv_async_t* async) {
  of(async).raised = true;
  return 0;
}

int uv_signal_init(uv_loop_t* loop, uv_signal_t* signal) {
  add(loop, signal);
  return 0;
}

int uv_signal_start(uv_signal_t* signal, uv_signal_cb called, int number) {
  Handle& handle = of(signal);
  handle.on_signal = called;
  handle.number = number;
  start(handle.loop->signals, handle);
  return 0;
}

int uv_poll_init(uv_loop_t* loop, uv_poll_t* poll, int descriptor) {
  add(loop, poll).number = descriptor;
  return 0;
}

// The simulated disk reports no changes of files.
int uv_fs_event_init(uv_loop_t*, uv_fs_event_t*) {
  return UV_ENOSYS;
}

int uv_fs_event_start(uv_fs_event_t*, uv_fs_event_cb, const char*, unsigned int) {
  return UV_ENOSYS;
}

int uv_poll_init_socket(uv_loop_t* loop, uv_poll_t* poll, uv_os_sock_t socket) {
  return uv_poll_init(loop, poll, socket);
}

int uv_poll_stop(uv_poll_t* poll) {
  Handle& handle = of(poll);
  if (std::exchange(handle.active, false)) handle.loop->polls.erase(handle.number);
  return 0;
}

int uv_poll_start(uv_poll_t* poll, int events, uv_poll_cb called) {
  uv_poll_stop(poll);
  if (events == 0) return 0;
  Handle& handle = of(poll);
  handle.events = events;
  handle.on_poll = called;
  handle.active = true;
  handle.loop->polls[handle.number] = &handle;
  return 0;
}

// --- The thread pool

int uv_queue_work(uv_loop_t* raw, uv_work_t* work, uv_work_cb called, uv_after_work_cb after) {
  Loop& loop = loop_of(raw);
  work->loop = raw;
  const std::uint64_t number = ++all_works;
  loop.works.emplace(number, Loop::Work{.work = work, .called = called, .after = after});
  const tubed::Duration wait = std::chrono::microseconds(20 + loop.chance.below(2000));
  loop.world.after(wait, [number] {
    if (current_loop == nullptr || current_loop->ended) return;
    const auto found = current_loop->works.find(number);
    if (found == current_loop->works.end()) return;
    const Loop::Work begun = found->second;
    current_loop->works.erase(found);
    begun.called(begun.work);
    current_loop->done.push_back(begun);
  });
  return 0;
}

}  // extern "C"
