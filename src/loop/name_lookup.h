// NameLookup: finds the numeric addresses of the name of a host, without blocking the loop.
//
// getaddrinfo(3) cannot be interrupted, and a slow name server delays it by many seconds. So each
// name is looked up by a thread of its own, which a lookup can leave at any time: neither the
// pool of libuv, which works on files, nor the end of the server waits for it. Lookups of the same
// name share the thread that is running, so that a name server that is slower than their limit
// still answers one of them. If no lookup waits when the thread has its result, the result is kept
// for kKept, for the next lookup of the name. Otherwise no result outlives the thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "loop/timer.h"
#include "loop/wakeup.h"
#include "text/host.h"

namespace tubed::loop {

class NameLookup {
 public:
  // At least one address, in the order in which they are to be tried; or one line with the name and
  // the reason.
  using Found = Result<std::vector<NumericHost>>;
  using Done = std::function<void(Found)>;

  // The most names that are looked up at a time in the process. Beyond it, a lookup fails.
  static constexpr std::size_t kMostNames = 64;
  // How long a result is kept that no lookup waits for: longer than the pause after which a node
  // dials again.
  static constexpr Duration kKept = std::chrono::seconds(2);
  // The most addresses of a name that are used.
  static constexpr std::size_t kMostAddresses = 16;

  // Calls `done` once, in a later event of the loop, within `limit`; it may destroy the lookup.
  // Destroying the lookup earlier cancels it, without waiting. `loop` outlives the lookup.
  NameLookup(Loop& loop, std::string name, Duration limit, Done done);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  const std::string& name() const { return name_; }

 private:
  friend class NameThreads;

  void finish();

  const std::string name_;
  Done done_;
  std::optional<Found> found_;  // guarded by NameThreads
  Wakeup wakeup_;
  Timer timer_;
};

}  // namespace tubed::loop
