// The ids, numbers, states and limits of the queue that every layer uses.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace tubed {

// Unique in a server's life and across its restarts. The first job has 1, each put takes the next
// id.
using JobId = std::uint64_t;

// Smaller is more urgent.
using Priority = std::uint32_t;

// Jobs of a smaller priority than this are counted as urgent in stats.
inline constexpr Priority kUrgentBelow = 1024;

// A number of whole seconds as the protocol carries it (delay, TTR, pause, timeout).
struct Seconds {
  std::uint32_t count = 0;

  constexpr operator Duration() const { return std::chrono::seconds(count); }
  friend constexpr bool operator==(Seconds, Seconds) = default;
  friend constexpr Time operator+(Time time, Seconds seconds) {
    return time + std::chrono::seconds(seconds.count);
  }
};

// Names a session, which puts, waits for and holds jobs. The server opens one for each connection.
// Ids are dense and reused.
using SessionId = std::uint32_t;

enum class JobState : std::uint8_t { ready, delayed, buried, reserved };

// The word that stats-job shows.
constexpr std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::ready:
      return "ready";
    case JobState::delayed:
      return "delayed";
    case JobState::buried:
      return "buried";
    case JobState::reserved:
      return "reserved";
  }
  return "";
}

inline constexpr std::string_view kDefaultTube = "default";
inline constexpr std::size_t kMaxTubeNameBytes = 200;
inline constexpr std::uint32_t kMaxJobBytesCeiling = 1U << 30;

// The bounds of the queue. A command that would exceed one is answered with a reply of the
// protocol.
struct Limits {
  std::uint32_t job_bytes = 65'535;             // largest body; a larger body is JOB_TOO_BIG
  std::uint64_t job_memory_bytes = 1ULL << 30;  // bodies and bookkeeping of all jobs
  std::uint32_t tubes = 100'000;
  std::uint32_t session_watches = 10'000;  // entries of one watch list
  std::uint32_t watches = 1'000'000;       // entries of all watch lists together
  std::uint32_t work_per_turn = 1'000;  // jobs moved for one command, or of one kind, in one tick
  // A longer watch list is also kept as a set with one bit for each tube, and a reserve does not
  // walk the list. This bound does not change in an engine's life.
  std::uint32_t short_watch_list = 256;
  // How many tubes have metrics of their own; all other tubes share one record.
  std::uint32_t tubes_with_metrics = 0;
  Duration metrics_retention = std::chrono::minutes(10);  // kept after the tube
};

}  // namespace tubed
