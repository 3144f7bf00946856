// run() repeats: leave() if the run is stopping; ended() decides whether the run is over; connect()
// and reserve() use what has become possible; tick() waits for the next event or timer and handles
// it. All workers share one event loop, whose handlers only set flags; serve_workers() evaluates
// the flags after the wait. No worker changes while another is being handled.
//
// Connections: one attempt is in progress at a time, for any worker that is away; the pause between
// failed attempts doubles from 100 ms to 5 s. An outage begins with the first lost connection and
// ends when a worker is greeted; it is reported once at its beginning and once at its end.
//
// Stopping: the first signal sets stopping_, workers without a running command leave, and the run
// ends when the last command has ended and its job is deleted, released or buried. The second
// signal also terminates the commands; their jobs go back to the queue.
#include "tubectl/work/worker_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl::work {
namespace {

using std::chrono::milliseconds;

constexpr Clock::duration kFirstPause = milliseconds(100);
constexpr Clock::duration kLongestPause = std::chrono::seconds(5);
// Limits the commands started in one tick: a start takes a while, and the jobs of other workers
// need their touches meanwhile.
constexpr std::size_t kMostStarts = 16;

using State = Worker::State;

}  // namespace

WorkerPool::WorkerPool(const Plan& plan, const RunLimits& limits, const Report& report)
    : plan_(plan),
      limits_(limits),
      report_(report),
      connecting_{.connector = Connector(plan.server)} {}

int WorkerPool::run(client::SignalInput& signals) {
  auto loop = client::EventLoop::create();
  if (!loop) return fail(kExitFailure, loop.error().message);
  loop_ = std::move(*loop);
  auto watch = loop_->watch(signals.descriptor(), [this, &signals](client::EventLoop::Ready) {
    if (signals.take()) take_stop_signal();
    return Result<void>();
  });
  if (!watch) return fail(kExitFailure, watch.error().message);
  signals_watch_ = std::move(*watch);
  for (std::size_t i = 0; i < limits_.workers; ++i) workers_.emplace_back(plan_, report_, *loop_);
  now_ = outage_.connect_at = Clock::now();
  outage_.pause = kFirstPause;
  for (;;) {
    if (stopping_) leave();
    if (const auto code = ended()) return *code;
    if (!stopping_) {
      connect();
      reserve();
      if (stopping_) continue;
    }
    if (const auto ticked = tick(); !ticked) return fail(kExitFailure, ticked.error().message);
  }
}

void WorkerPool::connect() {
  if (now_ < outage_.connect_at || !wants_connection()) return;
  if (auto started = connecting_.connector.start(); !started) return lost(started.error());
  auto watch = loop_->watch(connecting_.connector.descriptor(), [this](client::EventLoop::Ready) {
    connecting_.done = true;
    return Result<void>();
  });
  if (watch) {
    connecting_.watch = std::move(*watch);
  } else {
    connecting_.connector.abandon();
    lost(watch.error());
  }
}

// Reserves at most as many jobs as commands may start, now and by --count; a waiting reserve counts
// with all jobs that it may bring. Workers that have not timed out come first: otherwise the first
// workers could take all reserves repeatedly, and a run with --exit-when-idle would not end.
void WorkerPool::reserve() {
  std::uint64_t left = std::min(jobs_left(), places_left());
  for (const bool idle : {false, true}) {
    for (Worker& worker : workers_) {
      if (left == 0) return;
      if (worker.state() != State::resting || worker.idle() != idle) continue;
      left -= worker.reserve(left, now_);
    }
  }
}

// A job that the server gives to a leaving worker at this moment returns when the connection
// closes.
void WorkerPool::leave() {
  for (Worker& worker : workers_) worker.stop();
}

std::optional<int> WorkerPool::ended() {
  if (std::ranges::any_of(workers_, &Worker::is_at_work)) return std::nullopt;
  if (stopping_ || is_idle()) return exit_code_;
  // No worker is at work: all jobs of the limit are done.
  if (jobs_left() == 0 && std::ranges::none_of(workers_, &Worker::unworked)) return 0;
  if (const auto moment = gives_up_at(); moment && *moment <= now_) {
    return fail(kExitUnavailable, "the server is gone");
  }
  return std::nullopt;
}

Result<void> WorkerPool::tick() {
  TRY(loop_->run_once(wait_until()));
  now_ = Clock::now();
  serve_workers();
  if (std::exchange(connecting_.done, false)) take_connection();
  return {};
}

// Serves every worker once. A tick starts at most kMostStarts commands; the next tick begins after
// the last worker that started some, because otherwise the same worker would always be last.
void WorkerPool::serve_workers() {
  std::size_t starts = 0;
  const std::size_t first = next_;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::size_t index = (first + i) % workers_.size();
    now_ = Clock::now();
    const std::size_t started = serve(workers_[index], kMostStarts - starts);
    starts += started;
    if (started > 0 && starts == kMostStarts) next_ = (index + 1) % workers_.size();
  }
}

void WorkerPool::take_connection() {
  auto connected = connecting_.connector.take();
  if (!connected) return;
  connecting_.watch.reset();
  if (!*connected) return lost(connected->error());
  // Closes the connection if no worker needs it any longer.
  if (!wants_connection()) return;
  Worker& worker = *std::ranges::find(workers_, State::away, &Worker::state);
  worker.greet(std::move(connected->value()));
  if (const auto loss = worker.take_loss()) lost(*loss);
}

// Handles one worker, and the consequences for the pool: a command that cannot be started, or a
// role that may not reserve, ends the run; a connection is lost; an outage ends; a reserve times
// out.
std::size_t WorkerPool::serve(Worker& worker, std::size_t most) {
  const State before = worker.state();
  const bool could_run = !worker.cannot_run();
  const std::size_t started = worker.serve(most, now_);
  if (could_run && worker.cannot_run() && exit_code_ == 0) {
    stopping_ = true;
    exit_code_ = fail(worker.cannot_run()->exit_code, worker.cannot_run()->reason);
  }
  if (const auto loss = worker.take_loss()) lost(*loss);
  if (before == State::greeting && worker.state() == State::resting) {
    was_greeted_ = true;
    outage_.pause = kFirstPause;
    if (outage_.since) report_.event("connected", "connected again");
    outage_.since.reset();
  }
  if (before == State::waiting && worker.state() == State::resting && worker.idle()) {
    for (Worker& other : workers_) other.share_idleness_of(worker);
  }
  return started;
}

void WorkerPool::take_stop_signal() {
  stopping_ = true;
  if (++signals_taken_ < 2) return;
  for (Worker& worker : workers_) {
    if (!worker.end_commands(now_) && worker.is_at_work()) worker.leave();
  }
}

// A failure to connect before the first greeting ends the run, unless --wait is given: a wrong
// address is more likely than an outage.
void WorkerPool::lost(const Error& error) {
  if (!was_greeted_ && !limits_.wait_for_server) {
    if (!stopping_) exit_code_ = fail(kExitUnavailable, error.message);
    stopping_ = true;
    return;
  }
  if (!outage_.since) {
    outage_.since = now_;
    if (!stopping_) report_.event("disconnected", error.message + "; trying again");
  }
  if (outage_.connect_at > now_) return;  // usually all connections are lost together
  outage_.connect_at = now_ + outage_.pause;
  outage_.pause = std::min(2 * outage_.pause, kLongestPause);
}

std::uint64_t WorkerPool::jobs_left() const {
  if (!limits_.jobs) return UINT64_MAX;
  std::uint64_t taken = 0;
  for (const Worker& worker : workers_) taken += worker.worked() + worker.unworked();
  return *limits_.jobs - taken;
}

std::uint64_t WorkerPool::places_left() const {
  std::uint64_t taken = 0;
  for (const Worker& worker : workers_) taken += worker.jobs();
  return limits_.workers - taken;
}

// True if a worker has waited for the whole time, and no waiting worker has waited less.
bool WorkerPool::is_idle() const {
  if (!plan_.wait_seconds || std::ranges::none_of(workers_, &Worker::idle)) return false;
  const bool may_reserve = jobs_left() > 0;
  return std::ranges::none_of(workers_, [may_reserve](const Worker& worker) {
    if (worker.idle() || worker.state() == State::away) return false;
    return worker.state() != State::resting || may_reserve;
  });
}

bool WorkerPool::wants_connection() const {
  return !stopping_ && !connecting_.connector.busy() && jobs_left() > 0 &&
         std::ranges::find(workers_, State::away, &Worker::state) != workers_.end();
}

// With --exit-when-idle the wait for a server is limited.
std::optional<TimePoint> WorkerPool::gives_up_at() const {
  if (!plan_.wait_seconds || !outage_.since || !was_greeted_) return std::nullopt;
  for (const Worker& worker : workers_) {
    if (worker.state() != State::away) return std::nullopt;
  }
  return *outage_.since + std::chrono::seconds(*plan_.wait_seconds);
}

// The earliest time at which the pool or a worker has something to do; no value: only an event can
// change anything.
std::optional<TimePoint> WorkerPool::wait_until() const {
  std::optional<TimePoint> first = gives_up_at();
  const auto sooner = [&first](const std::optional<TimePoint>& moment) {
    if (moment && (!first || *moment < *first)) first = moment;
  };
  if (wants_connection()) sooner(outage_.connect_at);
  for (const Worker& worker : workers_) sooner(worker.due());
  return first;
}

}  // namespace tubed::tubectl::work
