// The ids, numbers, states and limits of the queue that every layer uses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
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

// A time that a client gives in whole seconds or in milliseconds. The protocol shows it, and the
// server keeps it, rounded up to whole seconds: only 0 is 0.
struct TimeSpan {
  Seconds seconds = {};           // rounded up
  std::uint16_t short_by_ms = 0;  // the milliseconds that it is shorter: 0 to 999

  // Precondition: the time is at most 2^32 - 1 s.
  static constexpr TimeSpan of_milliseconds(std::uint64_t count) {
    const std::uint64_t seconds = (count + 999) / 1000;
    return {.seconds = {static_cast<std::uint32_t>(seconds)},
            .short_by_ms = static_cast<std::uint16_t>(seconds * 1000 - count)};
  }

  constexpr operator Duration() const {
    return std::chrono::seconds(seconds.count) - std::chrono::milliseconds(short_by_ms);
  }
  friend constexpr bool operator==(TimeSpan, TimeSpan) = default;
  friend constexpr Time operator+(Time time, TimeSpan span) { return time + Duration(span); }
};

// Names a session, which puts, waits for and holds jobs. The server opens one for each connection.
// Ids are dense and reused.
using SessionId = std::uint32_t;

// How a session chooses the next job among its watched tubes.
enum class ReserveMode : std::uint8_t {
  fifo,           // the job that comes first of all
  weighted,       // each tube gives jobs in proportion to the weight of its watch
  weighted_fair,  // each tube is worked on for a time in proportion to that weight
};

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

inline constexpr std::array<bool, 256> kNameCharacters = [] {
  std::array<bool, 256> allowed{};
  constexpr std::string_view all =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()";
  for (const char c : all) allowed[static_cast<unsigned char>(c)] = true;
  return allowed;
}();

// True for letters, digits and -+/;.$_() , 1 to 200 of them, not starting with '-'.
// [protocol: Name convention]
inline bool is_tube_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxTubeNameBytes || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return kNameCharacters[static_cast<unsigned char>(c)]; });
}

// The tags of a put, which the protocol of beanstalkd does not have. A text is valid as long as the
// line or the fact that it is from. [extension: put tags]
struct JobTags {
  std::string_view unique_key = {};  // idp: no other job of the tube may have it; empty: none
  Seconds cooldown = {};             // the key stays taken for this time after the job's deletion
  // max: how often the job may be reserved, 0 for any number, and where it goes then: `bury`,
  // `delete` or a tube; empty: where the policy of its tube says.
  std::optional<std::uint32_t> max_attempts = std::nullopt;
  std::string_view dead = {};
  std::optional<Seconds> time_to_live = std::nullopt;  // ttl: since the put; 0: without end
  // con: the number of jobs with the key that may be reserved at once, in all tubes; empty: none.
  std::string_view concurrency_key = {};
  std::uint32_t concurrency_limit = 1;
  std::string_view group = {};  // grp: the job is a member of this group, if any
  std::string_view after = {};  // aft: it is not ready while that group has members
  // Kept among the tags, but not a word of the line: the milliseconds that the TTR is shorter than
  // the whole seconds that are shown of it.
  std::uint16_t ttr_short_by_ms = 0;

  bool limits_life() const { return max_attempts || time_to_live; }
  bool names_groups() const { return !group.empty() || !after.empty(); }
  bool any() const {
    return !unique_key.empty() || !concurrency_key.empty() || limits_life() || names_groups() ||
           ttr_short_by_ms > 0;
  }
  friend bool operator==(const JobTags&, const JobTags&) = default;
};

// Matches the numbers in the journal.
enum class Tag : std::uint8_t {
  unique = 1,
  max_attempts = 2,
  time_to_live = 3,
  concurrency = 4,
  group = 5,
  after = 6,
  ttr_short_by_ms = 7,
};

// The word of the protocol; empty: none.
constexpr std::string_view word_of(Tag tag) {
  switch (tag) {
    case Tag::unique:
      return "idp";
    case Tag::max_attempts:
      return "max";
    case Tag::time_to_live:
      return "ttl";
    case Tag::concurrency:
      return "con";
    case Tag::group:
      return "grp";
    case Tag::after:
      return "aft";
    case Tag::ttr_short_by_ms:
      break;
  }
  return "";
}

// Calls visit(Tag, text, number) for each tag, in the order of Tag.
template <class Visit>
void for_each_tag(const JobTags& tags, Visit visit) {
  if (!tags.unique_key.empty()) visit(Tag::unique, tags.unique_key, tags.cooldown.count);
  if (tags.max_attempts) visit(Tag::max_attempts, tags.dead, *tags.max_attempts);
  if (tags.time_to_live) visit(Tag::time_to_live, std::string_view(), tags.time_to_live->count);
  if (!tags.concurrency_key.empty()) {
    visit(Tag::concurrency, tags.concurrency_key, tags.concurrency_limit);
  }
  if (!tags.group.empty()) visit(Tag::group, tags.group, 0U);
  if (!tags.after.empty()) visit(Tag::after, tags.after, 0U);
  if (tags.ttr_short_by_ms > 0) {
    visit(Tag::ttr_short_by_ms, std::string_view(), std::uint32_t{tags.ttr_short_by_ms});
  }
}

// The tags as a put has them, with a space between: "idp:key:300 max:5:dead".
inline std::string text_of(const JobTags& tags) {
  std::string line;
  for_each_tag(tags, [&line](Tag tag, std::string_view text, std::uint32_t number) {
    if (word_of(tag).empty()) return;
    line.append(line.empty() ? "" : " ").append(word_of(tag));
    const bool text_is_first = tag != Tag::max_attempts && tag != Tag::time_to_live;
    if (text_is_first) line.append(":").append(text);
    if (!text_is_first || number > 0) line.append(":").append(std::to_string(number));
    if (!text_is_first && !text.empty()) line.append(":").append(text);
  });
  return line;
}

// Why a job is dead. Matches the numbers in the journal.
enum class DeathReason : std::uint8_t { none, attempts, timeouts, releases, expired };

// The word that stats-job shows.
constexpr std::string_view word_of(DeathReason reason) {
  constexpr std::array<std::string_view, 5> kWords = {"", "attempts", "timeouts", "releases",
                                                      "expired"};
  return kWords[static_cast<std::size_t>(reason)];
}

// In place of the value of a policy: takes the value away.
inline constexpr std::string_view kNoPolicyValue = "-";

// The notes of the queue about a job. [extension: tube policies, aft]
struct JobMarks {
  // Its counters when its present attempts began: at the put, the last kick or the last move.
  std::uint32_t reserves = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t releases = 0;
  // The tube that the policy took it out of the service of, until a kick; empty: none did. Valid as
  // long as the job or the fact that it is from.
  std::string_view dead_from = {};
  // Why, also after the kick: a job that has expired does not expire again.
  DeathReason reason = DeathReason::none;
  // The job was ready, and no longer waits for its group.
  bool after_done = false;

  bool any() const { return *this != JobMarks(); }
  friend bool operator==(const JobMarks&, const JobMarks&) = default;
};

// Matches the numbers in the journal, where marks are among the tags.
enum class Mark : std::uint8_t {
  reserves = 16,
  timeouts = 17,
  releases = 18,
  dead = 19,
  after_done = 20,
};

// Calls visit(Mark, text, number) for each mark, in the order of Mark.
template <class Visit>
void for_each_mark(const JobMarks& marks, Visit visit) {
  constexpr std::string_view kNoText;
  if (marks.reserves > 0) visit(Mark::reserves, kNoText, marks.reserves);
  if (marks.timeouts > 0) visit(Mark::timeouts, kNoText, marks.timeouts);
  if (marks.releases > 0) visit(Mark::releases, kNoText, marks.releases);
  if (marks.reason != DeathReason::none) {
    visit(Mark::dead, marks.dead_from, static_cast<std::uint32_t>(marks.reason));
  }
  if (marks.after_done) visit(Mark::after_done, kNoText, 1U);
}

inline constexpr std::uint32_t kMaxJobBytesCeiling = 1U << 30;

// The bounds of the queue. A command that would exceed one is answered with a reply of the
// protocol.
struct Limits {
  std::uint32_t job_bytes = 65'535;             // largest body; a larger body is JOB_TOO_BIG
  std::uint64_t job_memory_bytes = 1ULL << 30;  // bodies and bookkeeping of all jobs
  std::uint32_t tubes = 100'000;
  std::uint32_t policies = 10'000;         // values that clients have set for tubes
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
