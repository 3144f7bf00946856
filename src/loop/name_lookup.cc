// The process has one NameThreads, which is never destroyed: a thread may still be in
// getaddrinfo(3) when the process ends. A thread owns its copy of the name and nothing else; the
// lookups that wait for it are in a list, from which each removes itself. If none is left, the
// result is kept for the next lookup.
#include "loop/name_lookup.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/planted.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace tubed::loop {

namespace {

using FoundHosts = std::vector<NumericHost>;

Error not_resolved(const std::string& name, std::string_view reason) {
  return {fmt::format("cannot resolve {}: {}", name, reason)};
}

NumericHost numeric_host(const addrinfo& found) {
  NumericHost host;
  if (found.ai_family == AF_INET6) {
    host.family = HostFamily::ipv6;
    const auto& address = *reinterpret_cast<const sockaddr_in6*>(found.ai_addr);
    std::copy_n(std::begin(address.sin6_addr.s6_addr), host.bytes.size(), host.bytes.begin());
    return host;
  }
  const auto& address = *reinterpret_cast<const sockaddr_in*>(found.ai_addr);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&address.sin_addr);
  host.bytes[10] = host.bytes[11] = 0xff;  // as text/host.h has it
  std::copy_n(bytes, sizeof address.sin_addr, host.bytes.begin() + 12);
  return host;
}

// Blocks for as long as the system's resolver does.
NameLookup::Found resolve(const std::string& name) {
  const addrinfo hints{.ai_flags = 0,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_STREAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (code == EAI_SYSTEM) return not_resolved(name, os::error_text(errno));
  if (code != 0) return not_resolved(name, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  FoundHosts hosts;
  for (; list != nullptr && hosts.size() < NameLookup::kMostAddresses; list = list->ai_next) {
    if (list->ai_family != AF_INET && list->ai_family != AF_INET6) continue;
    const NumericHost host = numeric_host(*list);
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  if (hosts.empty()) return not_resolved(name, "it has no address");
  return hosts;
}

}  // namespace

class NameThreads {
 public:
  static NameThreads& instance() {
    static auto& threads = *new NameThreads;
    return threads;
  }

  void add(NameLookup& lookup) {
    const std::lock_guard lock(mutex_);
    if (TUBED_PLANTED(name_is_resolved_once) && kept_.contains(lookup.name()))
      return answer(lookup, kept_.at(lookup.name()));
    const auto running = waiting_.find(lookup.name());
    if (running != waiting_.end()) return running->second.push_back(&lookup);
    forget_old();
    if (const auto late = late_.extract(lookup.name())) return answer(lookup, late.mapped().result);
    if (waiting_.size() >= NameLookup::kMostNames)
      return answer(lookup, not_resolved(lookup.name(), "too many names are being resolved"));
    try {
      std::thread([this, name = lookup.name()] { run(name); }).detach();
      waiting_[lookup.name()].push_back(&lookup);
    } catch (const std::system_error& error) {
      answer(lookup, not_resolved(lookup.name(),
                                  fmt::format("no thread can be started: {}", error.what())));
    }
  }

  void remove(const NameLookup& lookup) {
    const std::lock_guard lock(mutex_);
    const auto running = waiting_.find(lookup.name());
    if (running != waiting_.end()) std::erase(running->second, &lookup);
  }

  std::optional<NameLookup::Found> found_by(NameLookup& lookup) {
    const std::lock_guard lock(mutex_);
    return std::exchange(lookup.found_, std::nullopt);
  }

 private:
  void run(const std::string& name) {
    const NameLookup::Found result = resolve(name);
    const std::lock_guard lock(mutex_);
    if (TUBED_PLANTED(name_is_resolved_once) && result) kept_.emplace(name, result);
    const auto waiting = waiting_.extract(name);
    for (NameLookup* const lookup : waiting.mapped()) answer(*lookup, result);
    if (waiting.mapped().empty()) keep(name, result);
  }

  // With the lock, as the next two functions.
  void keep(const std::string& name, const NameLookup::Found& result) {
    forget_old();
    if (late_.size() < NameLookup::kMostNames)
      late_.emplace(name, Late{.result = result, .until = os::monotonic_now() + NameLookup::kKept});
  }

  void forget_old() {
    std::erase_if(late_,
                  [now = os::monotonic_now()](const auto& one) { return one.second.until <= now; });
  }

  // The lock keeps the lookup alive.
  static void answer(NameLookup& lookup, const NameLookup::Found& result) {
    lookup.found_ = result;
    lookup.wakeup_.wake();
  }

  struct Late {
    NameLookup::Found result;
    Time until;
  };

  std::mutex mutex_;
  // The lookups that wait for each thread, by the name that it looks up.
  std::map<std::string, std::vector<NameLookup*>> waiting_;
  // The results that no lookup waited for, at most kMostNames.
  std::map<std::string, Late> late_;
  std::map<std::string, NameLookup::Found> kept_;  // with a planted fault
};

NameLookup::NameLookup(Loop& loop, std::string name, Duration limit, Done done)
    : name_(std::move(name)),
      done_(std::move(done)),
      wakeup_(loop, [this] { finish(); }),
      timer_(loop, [this] { finish(); }) {
  timer_.arm(limit);
  NameThreads::instance().add(*this);
}

NameLookup::~NameLookup() {
  NameThreads::instance().remove(*this);
}

void NameLookup::finish() {
  if (!done_) return;
  timer_.disarm();
  NameThreads& threads = NameThreads::instance();
  threads.remove(*this);
  auto result = threads.found_by(*this);
  const Done done = std::exchange(done_, nullptr);  // may destroy the lookup
  done(result ? std::move(*result) : Found(not_resolved(name_, "no answer in time")));
}

}  // namespace tubed::loop
