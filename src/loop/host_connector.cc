#include "loop/host_connector.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace tubed::loop {

HostConnector::HostConnector(Loop& loop, const std::string& host, std::uint16_t port,
                             const ConnectOptions& options, Resolved resolved, Done done)
    : loop_(loop),
      port_(port),
      options_(options),
      resolved_(std::move(resolved)),
      done_(std::move(done)) {
  const auto name = parse_host(host) ? std::nullopt : parse_host_name(host);
  if (!name) {
    connector_ = std::make_unique<Connector>(loop, host, port, options, std::move(done_));
    return;
  }
  deadline_ = os::monotonic_now() + options.limit;
  lookup_ = std::make_unique<NameLookup>(
      loop, *name, options.limit,
      [this](NameLookup::Found result) { on_resolved(std::move(result)); });
}

void HostConnector::on_resolved(NameLookup::Found result) {
  lookup_.reset();
  if (!result) {
    const Done done = std::move(done_);  // may destroy the object
    return done(std::move(result).error());
  }
  if (resolved_) resolved_(*result);
  left_ = std::move(*result);
  std::ranges::reverse(left_);
  try_next();
}

void HostConnector::try_next() {
  const std::string host = to_string(left_.back());
  ConnectOptions options = options_;
  options.limit = std::max(deadline_ - os::monotonic_now(), Duration()) /
                  static_cast<Duration::rep>(left_.size());
  left_.pop_back();
  connector_ = std::make_unique<Connector>(
      loop_, host, port_, options, [this](Result<std::unique_ptr<Channel>> result) {
        if (!result && !left_.empty()) return try_next();
        const Done done = std::move(done_);  // may destroy the object
        done(std::move(result));
      });
}

}  // namespace tubed::loop
