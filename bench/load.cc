#include "bench/load.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/client.h"

namespace tubed::bench {
namespace {

// A server that says nothing for so long is taken for dead.
constexpr int kPatienceMilliseconds = 30'000;
constexpr std::size_t kBufferBytes = 64 * 1024;

// Ready to be sent: as many puts as a client may send at once, up to what a socket takes.
std::string make_requests(const LoadPlan& plan, std::size_t& request_bytes) {
  const std::string body(plan.body_bytes, 'x');
  const std::string request = fmt::format("put 0 0 60 {}\r\n{}\r\n", body.size(), body);
  request_bytes = request.size();
  std::string requests;
  // One more, as a put that was cut is gone on with from its middle.
  const std::size_t count = std::clamp<std::size_t>(1024 * 1024 / request_bytes, 1, plan.in_flight);
  for (std::size_t i = 0; i < count + 1; ++i) requests += request;
  return requests;
}

// When the puts in flight were sent: they are answered in that order.
class SendTimes {
 public:
  explicit SendTimes(std::size_t in_flight) : times_(in_flight) {}

  void sent(std::uint64_t count, Clock::time_point now) {
    for (; count > 0; --count) times_[sent_++ % times_.size()] = now;
  }
  Clock::time_point answered() { return times_[answered_++ % times_.size()]; }

 private:
  std::vector<Clock::time_point> times_;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
};

class Load {
 public:
  explicit Load(const LoadPlan& plan)
      : plan_(plan),
        requests_(make_requests(plan, request_bytes_)),
        to_send_(plan.puts > 0 ? plan.puts : UINT64_MAX),
        buffer_(kBufferBytes) {}
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    if (epoll_ >= 0) ::close(epoll_);
  }

  Result<Figures> run() {
    if (auto result = connect(); !result) return result.error();
    start_ = now_ = Clock::now();
    if (plan_.warm_up == Clock::duration::zero()) begin_ = start_;
    for (Member& member : members_) {
      if (auto result = put(member, plan_.in_flight); !result) return result.error();
      if (auto result = watch(EPOLL_CTL_ADD, member); !result) return result.error();
    }
    while (in_flight_ > 0) {
      if (auto result = turn(); !result) return result.error();
    }
    if (!end_) end_ = now_;
    figures_.time = *end_ - begin_.value_or(*end_);
    return std::move(figures_);
  }

 private:
  struct Member {
    Member(int descriptor, const Load& load)
        : client(descriptor, load.requests_, load.request_bytes_),
          times(load.plan_.latencies ? load.plan_.in_flight : 0) {}

    Client client;
    SendTimes times;
    bool watched_for_room = false;
  };

  Result<void> connect() {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return Error{fmt::format("no epoll: {}", std::strerror(errno))};
    for (unsigned i = 0; i < plan_.clients; ++i) {
      auto descriptor = connect_to(plan_.host, plan_.port);
      if (!descriptor) return descriptor.error();
      members_.emplace_back(*descriptor, *this);
    }
    return {};
  }

  Result<void> watch(int operation, Member& member) {
    member.watched_for_room = member.client.blocked();
    epoll_event event{};
    event.events = member.watched_for_room ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.ptr = &member;
    if (::epoll_ctl(epoll_, operation, member.client.descriptor(), &event) != 0) {
      return Error{fmt::format("cannot watch a socket: {}", std::strerror(errno))};
    }
    return {};
  }

  // One wait, and what it brought. The measured time begins and ends with a turn, and what a turn
  // brings was made before it: so the turn that begins it does not count, and the one that ends it
  // does.
  Result<void> turn() {
    std::array<epoll_event, 256> events;
    const int ready =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kPatienceMilliseconds);
    if (ready < 0 && errno != EINTR) {
      return Error{fmt::format("cannot wait: {}", std::strerror(errno))};
    }
    if (ready == 0) return Error{fmt::format("{} puts are not answered", in_flight_)};
    now_ = Clock::now();
    const bool over = plan_.puts == 0 && begin_ && now_ - *begin_ >= plan_.time;
    if (over) to_send_ = 0;
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      Member& member = *static_cast<Member*>(event.data.ptr);
      if (auto result = attend(member, event.events); !result) return result;
    }
    if (over && !end_) end_ = now_;
    if (!begin_ && now_ - start_ >= plan_.warm_up) begin_ = now_;
    return {};
  }

  Result<void> attend(Member& member, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
      if (auto result = member.client.send(); !result) return result;
    }
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
      auto answered = member.client.receive(buffer_);
      if (!answered) return answered.error();
      if (plan_.latencies) now_ = Clock::now();  // not of the turn: others came before
      count(member, *answered);
      if (auto result = put(member, *answered); !result) return result;
    }
    if (member.client.blocked() != member.watched_for_room) return watch(EPOLL_CTL_MOD, member);
    return {};
  }

  void count(Member& member, std::uint64_t answered) {
    const bool measured = begin_ && !end_;
    in_flight_ -= answered;
    figures_.all += answered;
    if (measured) figures_.measured += answered;
    if (!plan_.latencies) return;
    for (std::uint64_t i = 0; i < answered; ++i) {
      const Clock::time_point sent = member.times.answered();
      if (measured) figures_.latencies.push_back(latency(now_ - sent));
    }
  }

  Result<void> put(Member& member, std::uint64_t wanted) {
    const std::uint64_t count = std::min(wanted, to_send_);
    if (count == 0) return {};
    to_send_ -= count;
    in_flight_ += count;
    if (plan_.latencies) member.times.sent(count, now_);
    return member.client.put(count);
  }

  const LoadPlan& plan_;
  std::size_t request_bytes_ = 0;
  std::string requests_;
  std::uint64_t to_send_;
  std::uint64_t in_flight_ = 0;
  std::vector<char> buffer_;
  int epoll_ = -1;
  std::deque<Member> members_;
  Clock::time_point start_;
  Clock::time_point now_;
  std::optional<Clock::time_point> begin_;  // of the measured time
  std::optional<Clock::time_point> end_;
  Figures figures_;
};

}  // namespace

Result<Figures> run_load(const LoadPlan& plan) {
  Load load(plan);
  return load.run();
}

}  // namespace tubed::bench
