// Two threads share Watcher::Shared: the screen's thread stores a request and later takes the
// answer; the watcher's thread waits for a request, serves it without the lock, stores the answer,
// and signals the eventfd that the event loop watches. Signals are blocked in the watcher's thread,
// and reach only the screen's thread. After a failed request the connection is dropped; the next
// request opens another.
#include "tubectl/top/watcher.h"

#include <array>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/system_error.h"
#include "os/descriptor.h"
#include "protocol/reply.h"

namespace tubed::tubectl::top {
namespace {

// The part of a job's body that a screen can show.
constexpr std::size_t kBodyBytes = 4096;

std::string message_of(const Order& order, const client::Reply& answer) {
  if (answer.is("PAUSED")) {
    return order.number == 0 ? fmt::format("{} is no longer paused", order.tube)
                             : fmt::format("paused {} for {} s", order.tube, order.number);
  }
  if (answer.is("KICKED")) {
    const std::uint64_t jobs = answer.number();
    return fmt::format("kicked {} job{} of {}", jobs, jobs == 1 ? "" : "s", order.tube);
  }
  if (answer.is(protocol::word::kNotFound)) {
    return fmt::format("tube {} no longer exists", order.tube);
  }
  return meaning_of(answer);
}

// Using a tube creates it, so this uses it only if it exists, and only while needed.
Result<std::string> carry_out(client::Connection& connection, const Order& order) {
  if (order.kind == Order::Kind::pause) {
    auto paused = TRY(connection.ask(fmt::format("pause-tube {} {}", order.tube, order.number)));
    return message_of(order, paused);
  }
  auto there = TRY(connection.ask(fmt::format("stats-tube {}", order.tube)));
  if (!there.is("OK")) return message_of(order, there);
  auto used = TRY(connection.ask(fmt::format("use {}", order.tube)));
  if (!used.is("USING")) return message_of(order, used);
  auto kicked = TRY(connection.ask(fmt::format("kick {}", order.number)));
  TRY(connection.ask("use default"));
  return message_of(order, kicked);
}

Result<Details> details_of(client::Connection& connection, const std::string& tube) {
  Details details;
  details.tube = tube;
  auto stats = TRY(connection.ask(fmt::format("stats-tube {}", tube)));
  details.there = stats.is("OK");
  if (!details.there) return details;
  details.stats = client::StatsBlock(stats.body);
  auto used = TRY(connection.ask(fmt::format("use {}", tube)));
  // The tube was removed meanwhile, and the server refuses to create it.
  if (!used.is("USING")) return details;
  for (const char* const state : {"ready", "delayed", "buried"}) {
    auto found = TRY(connection.ask(fmt::format("peek-{}", state)));
    if (!found.is("FOUND")) continue;
    HeadJob job{state, found.number(), found.body.size(), found.body.substr(0, kBodyBytes), {}};
    auto job_stats = TRY(connection.ask(fmt::format("stats-job {}", job.id)));
    if (job_stats.is("OK")) job.stats = client::StatsBlock(job_stats.body);
    details.jobs.push_back(std::move(job));
  }
  TRY(connection.ask("use default"));
  return details;
}

Result<RequestResult> serve(client::Connection& connection, const Request& request) {
  RequestResult result;
  if (request.order) {
    result.message = TRY(carry_out(connection, *request.order));
  }
  result.snapshot = TRY(take_snapshot(connection));
  if (!request.details_of.empty()) {
    result.details = TRY(details_of(connection, request.details_of));
  }
  return result;
}

// Connects first if necessary. Catches exceptions, which would end the program without restoring
// the terminal.
Result<RequestResult> try_to_serve(const Server& server,
                                   std::optional<client::Connection>& connection,
                                   const Request& request) {
  try {
    if (!connection) {
      auto connected = TRY(connect(server));
      connection.emplace(std::move(connected));
    }
    return serve(*connection, request);
  } catch (const std::exception& error) {
    return Error{error.what()};
  }
}

}  // namespace

struct Watcher::Shared {
  explicit Shared(os::Descriptor event) : ready(std::move(event)) {}

  os::Descriptor ready;  // an eventfd
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Request> request;
  std::optional<Result<RequestResult>> answer;
  bool ends = false;
};

Result<Watcher> Watcher::start(const Server& server, client::Connection connection) {
  os::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return client::system_error("cannot watch the server");
  const auto shared = std::make_shared<Shared>(std::move(event));
  // Signals are for the screen's thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<Error> failed;
  try {
    std::thread(work, shared, server, std::optional<client::Connection>(std::move(connection)))
        .detach();
  } catch (const std::system_error& error) {
    failed = Error{fmt::format("cannot watch the server: {}", error.what())};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed) return *failed;
  return Watcher(shared);
}

Watcher::~Watcher() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->ends = true;
  shared_->changed.notify_one();
}

void Watcher::ask(Request request) {
  busy_ = true;
  const std::lock_guard lock(shared_->mutex);
  shared_->request = std::move(request);
  shared_->changed.notify_one();
}

std::optional<Result<RequestResult>> Watcher::take() {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->answer) return std::nullopt;
  std::uint64_t count = 0;
  // An empty eventfd is no error.
  [[maybe_unused]] const auto got = ::read(descriptor(), &count, sizeof count);
  busy_ = false;
  return std::exchange(shared_->answer, std::nullopt);
}

int Watcher::descriptor() const {
  return shared_->ready.number();
}

void Watcher::work(const std::shared_ptr<Shared>& shared, const Server& server,
                   std::optional<client::Connection> connection) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->request || shared->ends; });
    if (shared->ends) return;
    const Request request = *std::exchange(shared->request, std::nullopt);
    lock.unlock();
    Result<RequestResult> answer = try_to_serve(server, connection, request);
    if (!answer) connection.reset();
    lock.lock();
    shared->answer.emplace(std::move(answer));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(shared->ready.number(), &one, sizeof one);
  }
}

}  // namespace tubed::tubectl::top
