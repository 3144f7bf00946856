// The ids, numbers, states and limits of the queue that every layer uses.
#pragma once

#include <cstdint>
#include <string>
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

// The tags of a put, which the protocol of beanstalkd does not have. A text is valid as long as the
// line or the fact that it is from. [extension: put tags]
struct JobTags {
  std::string_view unique_key;  // idp: no other job of the tube may have it; empty: none
  Seconds cooldown;             // the key stays taken for this time after the job's deletion

  bool any() const { return !unique_key.empty(); }
  friend bool operator==(const JobTags&, const JobTags&) = default;
};

// The numbers are those of the journal.
enum class Tag : std::uint8_t { unique = 1 };

// The word of the protocol.
constexpr std::string_view word_of(Tag tag) {
  return tag == Tag::unique ? "idp" : "";
}

// Calls visit(Tag, text, number) for each tag, in the order of Tag.
template <class Visit>
void for_each_tag(const JobTags& tags, Visit visit) {
  if (!tags.unique_key.empty()) visit(Tag::unique, tags.unique_key, tags.cooldown.count);
}

// The tags as a put has them, with one space before each: " idp:key:300".
inline std::string text_of(const JobTags& tags) {
  std::string line;
  for_each_tag(tags, [&line](Tag tag, std::string_view text, std::uint32_t number) {
    line.append(" ").append(word_of(tag)).append(":").append(text);
    if (number > 0) line.append(":").append(std::to_string(number));
  });
  return line;
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
