#include "tubectl/work/connector.h"

#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "client/system_error.h"

namespace tubed::tubectl::work {
namespace {

constexpr std::chrono::seconds kConnectLimit{2};  // for each address of a name

// An exception must not leave the thread.
Result<client::Connection> try_to_connect(const client::Target& server) {
  try {
    return client::Connection::open(server, kConnectLimit);
  } catch (const std::exception& error) {
    return Error{error.what()};
  }
}

}  // namespace

// Shared by the thread and the connector; the last of them frees it. The thread writes `outcome`
// under the mutex and then signals `done`.
struct Connector::Attempt {
  explicit Attempt(os::Descriptor event) : done(std::move(event)) {}

  os::Descriptor done;  // an eventfd
  std::mutex mutex;
  std::optional<Result<client::Connection>> outcome;
};

// The thread is detached, because a join could wait for the resolver for minutes.
Result<void> Connector::start() {
  TUBED_ASSERT(!busy());
  os::Descriptor event(::eventfd(0, EFD_CLOEXEC));
  if (!event) return client::system_error("cannot connect");
  const auto attempt = std::make_shared<Attempt>(std::move(event));
  try {
    // Copies the target, because the thread may outlive the connector.
    std::thread([attempt, server = server_] {
      auto outcome = try_to_connect(server);
      const std::lock_guard lock(attempt->mutex);
      attempt->outcome.emplace(std::move(outcome));
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(attempt->done.number(), &one, sizeof one);
    }).detach();
  } catch (const std::system_error& error) {
    return Error{fmt::format("cannot connect: {}", error.what())};
  }
  attempt_ = attempt;
  return {};
}

std::optional<Result<client::Connection>> Connector::take() {
  TUBED_ASSERT(busy());
  std::optional<Result<client::Connection>> outcome;
  {
    const std::lock_guard lock(attempt_->mutex);
    if (!attempt_->outcome) return std::nullopt;
    outcome = std::exchange(attempt_->outcome, std::nullopt);
  }
  attempt_.reset();
  return outcome;
}

int Connector::descriptor() const {
  TUBED_ASSERT(busy());
  return attempt_->done.number();
}

}  // namespace tubed::tubectl::work
