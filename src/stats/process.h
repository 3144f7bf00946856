// The process and its machine, as stats and the metrics report them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"

namespace tubed::stats {

// Does not change while the process runs.
struct ProcessIdentity {
  std::uint64_t process_id = 0;
  std::string instance;  // a random id of this run
  std::string hostname;
  std::string os;
  std::string platform;
  Time started;
  Duration started_at{};  // the same moment by the wall clock, since 1970
};

struct CpuTimes {
  Duration user{};
  Duration system{};
};

// Reads from the operating system what the process uses. Each function is called when its number is
// reported, and not before: this folder makes no system calls.
struct ProcessProbe {
  std::function<CpuTimes()> cpu_times;
  std::function<std::uint64_t()> resident_bytes = [] { return std::uint64_t{0}; };
  std::function<std::uint64_t()> open_descriptors = [] { return std::uint64_t{0}; };
  std::function<std::uint64_t()> descriptor_limit = [] { return std::uint64_t{0}; };
};

}  // namespace tubed::stats
