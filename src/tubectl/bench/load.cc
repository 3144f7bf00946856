#include "tubectl/bench/load.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <deque>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "os/descriptor.h"
#include "protocol/reply.h"
#include "tubectl/bench/cycles.h"
#include "tubectl/bench/pipe.h"
#include "tubectl/bench/puts.h"
#include "tubectl/bench/reserves.h"
#include "tubectl/client.h"
#include "tubectl/connection.h"
#include "tubectl/stats.h"
#include "tubectl/system_error.h"

namespace tubed::tubectl::bench {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr std::size_t kFillInFlight = 32;
constexpr std::uint64_t kSignal = UINT64_MAX;  // what epoll says instead of a client's number
constexpr std::uint64_t kTimer = UINT64_MAX - 1;

std::string tube_name(const Plan& plan, std::size_t tube) {
  return plan.tubes == 1 ? std::string(kDefaultTube) : fmt::format("bench-{}", tube);
}

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // if not, a socket says so
}

Result<Client> connect_client(const Plan& plan, std::size_t client) {
  auto connected = Client::connect(plan.server);
  if (!connected || plan.tubes == 1) return connected;
  const std::string tube = tube_name(plan, plan.tube_of(client));
  using Asked = std::pair<std::string, std::string_view>;
  for (const auto& [command, wanted] :
       {Asked{"use " + tube, "USING "}, Asked{"watch " + tube, "WATCHING "},
        Asked{"ignore default", "WATCHING "}}) {
    const auto reply = TRY(connected->ask(command));
    if (!reply.line.starts_with(wanted)) {
      return Error{fmt::format("{} was answered {:?}", command, reply.line)};
    }
  }
  return connected;
}

// How many jobs are ready there; nothing: the server does not tell.
Result<std::optional<std::uint64_t>> ready_jobs(Client& client, const std::string& tube) {
  const auto reply = TRY(client.ask("stats-tube " + tube));
  if (reply.line == protocol::word::kNotFound) return std::optional<std::uint64_t>(0);
  return Stats(reply.body).number("current-jobs-ready");
}

class Load {
 public:
  explicit Load(const Plan& plan) : plan_(plan), buffer_(kBufferBytes) {}

  Result<Figures> run();

 private:
  struct Member {
    explicit Member(Connection connected) : connection(std::move(connected)) {}

    Connection connection;
    ReplyReader reader;
    bool watched_for_room = false;
  };

  Result<void> connect();
  Result<void> watch(int operation, int descriptor, std::uint64_t what, std::uint32_t events);
  Result<void> watch_signals();
  Result<std::vector<std::uint64_t>> fill();
  Result<std::vector<std::uint64_t>> jobs_that_are_there();

  // Runs a workload to its end; one after the other on the same connections.
  Result<void> run_workload(Workload& workload);
  Result<void> turn();
  Result<void> handle(const epoll_event& event);
  Result<void> attend(std::size_t client, std::uint32_t events);
  Result<void> receive(std::size_t client);
  Result<void> pump(std::size_t client, Clock::time_point now);
  Result<void> pump_timed();
  Result<void> arm_timer();
  void take_signal();
  void show_progress();

  const Plan& plan_;
  std::vector<char> buffer_;
  os::Descriptor epoll_;
  os::Descriptor timer_;
  os::Descriptor signals_;
  std::deque<Member> members_;  // they do not move
  Workload* workload_ = nullptr;
  Tally* tally_ = nullptr;
  bool is_measured_ = false;  // this workload; else it only prepares
  bool interrupted_ = false;
  std::size_t timed_next_ = 0;
  std::optional<Clock::time_point> armed_;
  Clock::time_point start_;
  Clock::time_point now_;
  Clock::time_point heard_;                 // when something last came
  std::optional<Clock::time_point> begin_;  // of the measured time
  std::optional<Clock::time_point> end_;
  Clock::time_point shown_;
  std::uint64_t shown_count_ = 0;
};

Result<Figures> Load::run() {
  TRY(connect());
  Tally tally{Figures{0, 0, {}, Latencies(plan_.each_latency)}};
  std::unique_ptr<Workload> workload;
  std::vector<std::uint64_t> jobs;
  if (plan_.work == Work::reserve) {
    jobs = TRY(plan_.fill ? fill() : jobs_that_are_there());
  }
  is_measured_ = true;
  start_ = now_ = Clock::now();
  switch (plan_.work) {
    case Work::put:
      workload = std::make_unique<Puts>(plan_, plan_.in_flight, tally);
      break;
    case Work::reserve:
      workload = std::make_unique<Reserves>(plan_, std::move(jobs), tally);
      break;
    case Work::cycle:
      workload = std::make_unique<Cycles>(plan_, tally);
      break;
    case Work::pipe:
      workload = std::make_unique<Pipe>(plan_, start_, tally);
      break;
  }
  tally_ = &tally;
  TRY(run_workload(*workload));
  if (!end_) end_ = now_;
  tally.figures.time = *end_ - begin_.value_or(*end_);
  return std::move(tally.figures);
}

Result<void> Load::connect() {
  raise_descriptor_limit();
  for (std::size_t i = 0; i < plan_.clients; ++i) {
    auto client = TRY(connect_client(plan_, i));
    members_.emplace_back(std::move(client).release());
  }
  epoll_ = os::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = os::Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_ || !timer_) return system_error("no epoll or timer");
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const int descriptor = members_[i].connection.number();
    TRY(watch(EPOLL_CTL_ADD, descriptor, i, EPOLLIN));
  }
  TRY(watch(EPOLL_CTL_ADD, timer_.number(), kTimer, EPOLLIN));
  return watch_signals();
}

Result<void> Load::watch(int operation, int descriptor, std::uint64_t what, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = what;
  if (::epoll_ctl(epoll_.number(), operation, descriptor, &event) != 0) {
    return system_error("cannot watch a descriptor");
  }
  return {};
}

Result<void> Load::watch_signals() {
  const sigset_t set = end_signals();
  signals_ = os::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_ || ::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return system_error("cannot wait for signals");
  }
  return watch(EPOLL_CTL_ADD, signals_.number(), kSignal, EPOLLIN);
}

// Puts the jobs of a reserve; returns how many are in which tube.
Result<std::vector<std::uint64_t>> Load::fill() {
  Tally tally;
  Puts puts(plan_, std::max(plan_.in_flight, kFillInFlight), tally);
  tally_ = &tally;
  TRY(run_workload(puts));
  return puts.in_tubes();
}

// A reserve in vain would wait for ever, so nobody asks for more than there is.
Result<std::vector<std::uint64_t>> Load::jobs_that_are_there() {
  auto client = TRY(Client::connect(plan_.server));
  std::vector<std::uint64_t> jobs(plan_.tubes);
  std::uint64_t left = plan_.jobs;
  for (std::size_t tube = 0; tube < plan_.tubes; ++tube) {
    auto ready = TRY(ready_jobs(client, tube_name(plan_, tube)));
    // A server that does not tell is believed to have them in equal parts.
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
  start_ = heard_ = shown_ = now_ = Clock::now();
  shown_count_ = 0;
  if (is_measured_ && plan_.warm_up == Clock::duration::zero()) begin_ = start_;
  tally_->measuring = begin_.has_value();
  if (interrupted_) workload.stop();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    TRY(pump(i, Clock::now()));
  }
  while (!workload.finished()) {
    TRY(turn());
  }
  if (shown_ != start_) std::fputs("\r\033[K", stderr);
  workload_ = nullptr;
  return {};
}

// One wait, and what it brought. The measured time begins and ends with a turn, and what a turn
// brings was made before it: so the turn that begins it does not count, and the one that ends it
// does.
Result<void> Load::turn() {
  TRY(arm_timer());
  std::array<epoll_event, 256> events;
  const int ready =
      ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), 1000);
  if (ready < 0 && errno != EINTR) return system_error("cannot wait");
  now_ = Clock::now();
  const auto patience = std::chrono::seconds(kPatienceSeconds + plan_.delay_seconds);
  if (workload_->overdue() == 0) heard_ = now_;
  if (ready == 0 && now_ - heard_ >= patience) {
    return Error{fmt::format("the server has been silent for {} s", patience.count())};
  }
  const bool over = is_measured_ && begin_ && plan_.time && now_ - *begin_ >= *plan_.time;
  if (over) workload_->stop();
  for (int i = 0; i < ready; ++i) {
    TRY(handle(events[static_cast<std::size_t>(i)]));
  }
  if (!is_measured_) return {};
  if ((over || interrupted_) && !end_) end_ = now_;
  if (!begin_ && !end_ && now_ - start_ >= plan_.warm_up) begin_ = now_;
  tally_->measuring = begin_ && !end_;
  if (plan_.progress && now_ - shown_ >= std::chrono::seconds(shown_ == start_ ? 2 : 1)) {
    show_progress();
  }
  return {};
}

Result<void> Load::handle(const epoll_event& event) {
  if (event.data.u64 == kSignal) {
    take_signal();
    return {};
  }
  if (event.data.u64 == kTimer) return pump_timed();
  return attend(static_cast<std::size_t>(event.data.u64), event.events);
}

Result<void> Load::attend(std::size_t client, std::uint32_t events) {
  Member& member = members_[client];
  heard_ = now_;
  if ((events & EPOLLOUT) != 0) TRY(member.connection.flush());
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) TRY(receive(client));
  return pump(client, Clock::now());
}

Result<void> Load::receive(std::size_t client) {
  Member& member = members_[client];
  const auto input = TRY(member.connection.receive(buffer_));
  const Clock::time_point now = Clock::now();  // not of the turn: others came before
  member.reader.feed(input);
  Reply reply;
  while (true) {
    auto whole = TRY(member.reader.next(reply));
    if (!whole) return {};
    TRY(workload_->take(client, reply, now));
  }
}

// Lets a client send what it has to.
Result<void> Load::pump(std::size_t client, Clock::time_point now) {
  Member& member = members_[client];
  while (!member.connection.blocked()) {
    const std::string_view request = workload_->next(client, now);
    if (request.empty()) break;
    TRY(member.connection.send(request));
  }
  const bool blocked = member.connection.blocked();
  if (blocked == member.watched_for_room) return {};
  member.watched_for_room = blocked;
  const std::uint32_t events = blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
  return watch(EPOLL_CTL_MOD, member.connection.number(), client, events);
}

// Something is due: the clients take turns at it.
Result<void> Load::pump_timed() {
  const std::size_t clients = workload_->timed_clients();
  for (std::size_t i = 0; i < clients; ++i) {
    const Clock::time_point now = Clock::now();
    if (const auto due = workload_->due(); !due || *due > now) break;
    timed_next_ = (timed_next_ + 1) % clients;
    TRY(pump(timed_next_, now));
  }
  armed_ = Clock::time_point::min();  // it has rung, and rings until it is set anew
  return {};
}

Result<void> Load::arm_timer() {
  const auto due = workload_->due();
  if (due == armed_) return {};
  itimerspec when{};  // zero: never
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

void Load::take_signal() {
  // It is no longer pending then, and the next one ends the process.
  const sigset_t set = end_signals();
  const timespec at_once{};
  while (::sigtimedwait(&set, nullptr, &at_once) > 0) continue;
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  interrupted_ = true;
  workload_->stop();
}

void Load::show_progress() {
  const std::uint64_t count = tally_->figures.all - shown_count_;
  const double seconds = std::chrono::duration<double>(now_ - shown_).count();
  const double elapsed = std::chrono::duration<double>(now_ - start_).count();
  std::fputs(fmt::format("\r\033[K{} {:.0f} s: {:.0f} operations/s", name_of(plan_.work), elapsed,
                         static_cast<double>(count) / seconds)
                 .c_str(),
             stderr);
  std::fflush(stderr);
  shown_ = now_;
  shown_count_ = tally_->figures.all;
}

}  // namespace

Result<Figures> run_load(const Plan& plan) {
  Load load(plan);
  return load.run();
}

}  // namespace tubed::tubectl::bench
