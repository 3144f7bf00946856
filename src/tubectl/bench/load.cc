// Load opens all connections, watches them in one event loop and runs a workload on them. For each
// client, pump() sends the commands that the workload has for it until no command is left or the
// socket is full; receive() parses replies and passes them to the workload, which may then have
// more to send. One thread serves all clients, so the measured latency includes the time that a
// reply waits until its client is handled; the clock is therefore read for each batch of replies
// and not once per tick.
//
// The measured time begins and ends at the boundary of a tick. A run fails if no reply arrives for
// kTimeoutSeconds (plus the delay of the jobs) while commands are unanswered. The first SIGINT or
// SIGTERM stops the workload, which completes the operations in progress; the second ends the
// process.
#include "tubectl/bench/load.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>

#include <fmt/format.h>
#include <sys/resource.h>

#include "client/connection.h"
#include "client/event_loop.h"
#include "client/stats_block.h"
#include "client/system_error.h"
#include "client/transport.h"
#include "protocol/reply.h"
#include "tubectl/bench/pipe.h"
#include "tubectl/bench/workloads.h"
#include "tubectl/commands/command.h"

namespace tubed::tubectl::bench {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr std::size_t kFillInFlight = 32;
// The longest tick: it bounds how late silence, progress and the end of the measured time are
// noticed.
constexpr std::chrono::seconds kMaxTick{1};

std::string tube_name(const Plan& plan, std::size_t tube) {
  return plan.tubes == 1 ? std::string(kDefaultTube) : fmt::format("bench-{}", tube);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // a failure shows when a socket is opened
}

// With several tubes, the client uses and watches its own tube only.
Result<client::Connection> connect_client(const Plan& plan, std::size_t client) {
  auto connected = client::Connection::open(plan.server);
  if (!connected || plan.tubes == 1) return connected;
  const std::string tube = tube_name(plan, plan.tube_of(client));
  using Asked = std::pair<std::string, std::string_view>;
  for (const auto& [command, wanted] :
       {Asked{"use " + tube, "USING "}, Asked{"watch " + tube, "WATCHING "},
        Asked{"ignore default", "WATCHING "}}) {
    const auto reply = TRY(connected->ask(command));
    if (is_access_refusal(reply.line))
      return Error{fmt::format("{}: {}", command, meaning_of(reply))};
    if (!reply.line.starts_with(wanted)) {
      return Error{fmt::format("{} was answered {:?}", command, reply.line)};
    }
  }
  return connected;
}

// The number of ready jobs of the tube. No value: the server does not report it.
Result<std::optional<std::uint64_t>> ready_jobs(client::Connection& client,
                                                const std::string& tube) {
  const auto reply = TRY(client.ask("stats-tube " + tube));
  if (reply.line == protocol::word::kNotFound) return std::optional<std::uint64_t>(0);
  return client::StatsBlock(reply.body).number("current-jobs-ready");
}

class Load {
 public:
  explicit Load(const Plan& plan) : plan_(plan), buffer_(kBufferBytes) {}

  Result<Figures> run();

 private:
  struct Member {
    explicit Member(client::Transport connected) : transport(std::move(connected)) {}

    client::Transport transport;
    client::ReplyParser parser{{.max_body_bytes = UINT32_MAX, .max_kept_bytes = kKeptBodyBytes}};
    client::EventLoop::Watch watch;
    bool watched_for_room = false;
  };

  struct MeasuredTime {
    std::optional<Clock::time_point> begin;
    std::optional<Clock::time_point> end;
  };
  // When progress was last shown, and the number of operations until then.
  struct Progress {
    Clock::time_point shown;
    std::uint64_t count = 0;
  };

  Result<void> connect();
  Result<void> watch_all();
  Result<std::vector<std::uint64_t>> fill();
  Result<std::vector<std::uint64_t>> jobs_that_are_there();

  // Runs a workload to its end. Workloads run one after the other on the same connections.
  Result<void> run_workload(Workload& workload);
  Result<void> tick();
  Result<void> handle_ready(std::size_t client, client::EventLoop::Ready ready);
  Result<void> receive(std::size_t client);
  Result<void> pump(std::size_t client, Clock::time_point now);
  Result<void> pump_timed();
  void take_signal();
  void show_progress();

  const Plan& plan_;
  std::vector<char> buffer_;
  std::unique_ptr<client::EventLoop> loop_;
  std::optional<client::SignalInput> signals_;
  client::EventLoop::Watch signals_watch_;
  std::deque<Member> members_;  // a deque, because members must not move
  Workload* workload_ = nullptr;
  Measurement* measurement_ = nullptr;
  bool is_measured_ = false;  // false: this workload only prepares
  bool interrupted_ = false;
  std::size_t timed_next_ = 0;
  Clock::time_point start_;
  Clock::time_point now_;
  Clock::time_point heard_;  // when input last arrived
  MeasuredTime measured_;
  Progress progress_;
};

// A reserve that fills the tubes first runs two workloads; the puts are not measured.
Result<Figures> Load::run() {
  TRY(connect());
  Measurement measurement{Figures{0, 0, {}, Latencies(plan_.each_latency)}};
  std::unique_ptr<Workload> workload;
  std::vector<std::uint64_t> jobs;
  if (plan_.work == Work::reserve) {
    jobs = TRY(plan_.fill ? fill() : jobs_that_are_there());
  }
  is_measured_ = true;
  start_ = now_ = Clock::now();
  switch (plan_.work) {
    case Work::put:
      workload = std::make_unique<Puts>(plan_, plan_.in_flight, measurement);
      break;
    case Work::reserve:
      workload = std::make_unique<Reserves>(plan_, std::move(jobs), measurement);
      break;
    case Work::cycle:
      workload = std::make_unique<Cycles>(plan_, measurement);
      break;
    case Work::pipe:
      workload = std::make_unique<Pipe>(plan_, start_, measurement);
      break;
  }
  measurement_ = &measurement;
  TRY(run_workload(*workload));
  if (!measured_.end) measured_.end = now_;
  measurement.figures.time = *measured_.end - measured_.begin.value_or(*measured_.end);
  return std::move(measurement.figures);
}

Result<void> Load::connect() {
  raise_descriptor_limit();
  for (std::size_t i = 0; i < plan_.clients; ++i) {
    auto client = TRY(connect_client(plan_, i));
    members_.emplace_back(std::move(client).release());
  }
  return watch_all();
}

Result<void> Load::watch_all() {
  loop_ = TRY(client::EventLoop::create());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto handler = [this, i](client::EventLoop::Ready ready) {
      return handle_ready(i, ready);
    };
    members_[i].watch = TRY(loop_->watch(members_[i].transport.number(), handler));
  }
  loop_->on_timer([this] { return pump_timed(); });
  signals_ = TRY(client::SignalInput::block({SIGINT, SIGTERM}));
  const auto stop = [this](client::EventLoop::Ready) -> Result<void> {
    take_signal();
    return {};
  };
  signals_watch_ = TRY(loop_->watch(signals_->descriptor(), stop));
  return {};
}
// Puts the jobs of a reserve; returns their number in each tube.
Result<std::vector<std::uint64_t>> Load::fill() {
  Measurement measurement;
  Puts puts(plan_, std::max(plan_.in_flight, kFillInFlight), measurement);
  measurement_ = &measurement;
  TRY(run_workload(puts));
  return puts.in_tubes();
}

// A reserve without a job would wait without limit, so the clients reserve at most the jobs that
// the tubes hold.
Result<std::vector<std::uint64_t>> Load::jobs_that_are_there() {
  auto client = TRY(client::Connection::open(plan_.server));
  std::vector<std::uint64_t> jobs(plan_.tubes);
  std::uint64_t left = plan_.jobs;
  for (std::size_t tube = 0; tube < plan_.tubes; ++tube) {
    auto ready = TRY(ready_jobs(client, tube_name(plan_, tube)));
    // If the server does not report the number, equal parts are assumed.
    const std::uint64_t most = ready.value_or(left / (plan_.tubes - tube));
    jobs[tube] = std::min(most, left);
    left -= jobs[tube];
  }
  if (left > 0) {
    return Error{fmt::format("only {} of {} jobs are ready", plan_.jobs - left, plan_.jobs)};
  }
  return jobs;
}

Result<void> Load::run_workload(Workload& workload) {
  workload_ = &workload;
  start_ = heard_ = progress_.shown = now_ = Clock::now();
  progress_.count = 0;
  if (is_measured_ && plan_.warm_up == Clock::duration::zero()) measured_.begin = start_;
  measurement_->measuring = measured_.begin.has_value();
  if (interrupted_) workload.stop();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    TRY(pump(i, Clock::now()));
  }
  while (!workload.finished()) {
    TRY(tick());
  }
  if (progress_.shown != start_) std::fputs("\r\033[K", stderr);
  workload_ = nullptr;
  return {};
}

// Waits once and handles the events. The measured time begins and ends with a tick. Its events
// happened before it: the tick that begins the measured time does not count, and the tick that ends
// it does.
Result<void> Load::tick() {
  TRY(loop_->set_timer(workload_->due()));
  const bool ready = TRY(loop_->wait(Clock::now() + kMaxTick));
  now_ = Clock::now();
  const auto patience = std::chrono::seconds(client::kTimeoutSeconds + plan_.delay_seconds);
  if (workload_->overdue() == 0) heard_ = now_;
  if (!ready && now_ - heard_ >= patience) {
    return Error{fmt::format("the server has been silent for {} s", patience.count())};
  }
  const bool over =
      is_measured_ && measured_.begin && plan_.time && now_ - *measured_.begin >= *plan_.time;
  if (over) workload_->stop();
  TRY(loop_->dispatch());
  if (!is_measured_) return {};
  if ((over || interrupted_) && !measured_.end) measured_.end = now_;
  if (!measured_.begin && !measured_.end && now_ - start_ >= plan_.warm_up) measured_.begin = now_;
  measurement_->measuring = measured_.begin && !measured_.end;
  if (plan_.progress &&
      now_ - progress_.shown >= std::chrono::seconds(progress_.shown == start_ ? 2 : 1)) {
    show_progress();
  }
  return {};
}

Result<void> Load::handle_ready(std::size_t client, client::EventLoop::Ready ready) {
  Member& member = members_[client];
  heard_ = now_;
  if (ready.writable) TRY(member.transport.flush());
  // Repeats until no input is left that the event loop cannot see.
  for (bool more = ready.readable; more || member.transport.has_input(); more = false) {
    TRY(receive(client));
  }
  return pump(client, Clock::now());
}

Result<void> Load::receive(std::size_t client) {
  Member& member = members_[client];
  std::string_view input = TRY(member.transport.receive(buffer_));
  const Clock::time_point now =
      Clock::now();  // not the time of the tick, because other events were handled since
  client::ReplyView reply;
  while (true) {
    const bool whole = TRY(member.parser.next(input, reply));
    if (!whole) return {};
    TRY(workload_->take(client, reply, now));
  }
}

// Sends what the workload has for the client.
Result<void> Load::pump(std::size_t client, Clock::time_point now) {
  Member& member = members_[client];
  while (!member.transport.blocked()) {
    const std::string_view request = workload_->next(client, now);
    if (request.empty()) break;
    TRY(member.transport.send(request));
  }
  const bool blocked = member.transport.blocked();
  if (blocked == member.watched_for_room) return {};
  member.watched_for_room = blocked;
  return member.watch.watch_writable(blocked);
}

// Sends what is due; the clients take turns.
Result<void> Load::pump_timed() {
  const std::size_t clients = workload_->timed_clients();
  for (std::size_t i = 0; i < clients; ++i) {
    const Clock::time_point now = Clock::now();
    if (const auto due = workload_->due(); !due || *due > now) break;
    timed_next_ = (timed_next_ + 1) % clients;
    TRY(pump(timed_next_, now));
  }
  return {};
}

void Load::take_signal() {
  // The next signal ends the process.
  signals_->unblock();
  interrupted_ = true;
  workload_->stop();
}

void Load::show_progress() {
  const std::uint64_t count = measurement_->figures.all - progress_.count;
  const double seconds = std::chrono::duration<double>(now_ - progress_.shown).count();
  const double elapsed = std::chrono::duration<double>(now_ - start_).count();
  std::fputs(fmt::format("\r\033[K{} {:.0f} s: {:.0f} operations/s", name_of(plan_.work), elapsed,
                         static_cast<double>(count) / seconds)
                 .c_str(),
             stderr);
  std::fflush(stderr);
  progress_.shown = now_;
  progress_.count = measurement_->figures.all;
}

}  // namespace

Result<Figures> run_load(const Plan& plan) {
  Load load(plan);
  return load.run();
}

}  // namespace tubed::tubectl::bench
