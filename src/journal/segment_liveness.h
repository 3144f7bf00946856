// SegmentLiveness: which records of which segments are still needed.
//
// Live records are: the newest `Added` of a job, the records of pauses in force, the newest
// `Remembered` of a cooldown, the newest record of a policy value that is set, and the newest
// `Applied`. All other records are dead. A `Held` is dead from the start, and is written again with
// the `Added` of its job. The class knows the segment and the length of each live record. A
// cooldown has the id of a deleted job, so an id has at most one live record. A segment without
// live records can be removed. Recovery builds this state, and the journal updates it for each
// record that it appends.
//
// It owns no file and does no I/O. Memory: 8 bytes per job if ids are dense.
//
// Invariant: the live bytes of a segment are the bytes of its live records.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/fact.h"

namespace tubed::journal {

// Consecutive ids.
struct IdRun {
  JobId first = 0;
  std::uint64_t count = 0;
};

struct SegmentUse {
  std::uint64_t sequence = 0;
  std::uint64_t used_bytes = 0;  // header and records
  std::uint64_t live_bytes = 0;
  std::uint64_t live_records = 0;
  // The ids of its `Added` and `Remembered` records, live or dead, in log order.
  std::vector<IdRun> added;
};

// A position in SegmentUse::added, for a walk in slices.
struct AddedCursor {
  std::size_t run = 0;
  std::uint64_t offset = 0;

  // Returns the id at the position and advances; nothing: the end is reached.
  std::optional<JobId> next(const std::vector<IdRun>& runs) {
    for (; run < runs.size(); ++run, offset = 0) {
      if (offset < runs[run].count) return runs[run].first + offset++;
    }
    return {};
  }
};

// A place in the log: a segment and an end offset within it.
struct LogPlace {
  std::uint64_t segment = 0;
  std::uint64_t end = 0;
};

struct PauseInForce {
  Seconds duration;
  Time until;
  std::uint64_t segment = 0;  // holds its record
  std::uint64_t bytes = 0;    // of its record
};

// A tube, and a key of its policy.
using PolicyName = std::pair<std::string, std::string>;

struct PolicyInForce {
  std::string value;
  std::uint64_t segment = 0;  // holds its record
  std::uint64_t bytes = 0;    // of its record
};

struct AppliedInForce {
  Applied position;
  std::uint64_t segment = 0;  // holds its record
  std::uint64_t bytes = 0;    // of its record
};

class SegmentLiveness {
 public:
  // Appends a segment. Segment numbers are consecutive.
  void open_segment(std::uint64_t sequence, std::uint64_t used_bytes);
  // Precondition: the segment has no live record and is not the only segment.
  void drop_oldest();

  bool empty() const { return segments_.empty(); }
  const SegmentUse& oldest() const { return segments_.front(); }
  const SegmentUse& newest() const { return segments_.back(); }
  // Returns the last of the consecutive dead segments at the beginning of the log, not counting the
  // newest segment. Precondition: the oldest is dead and not the newest. O(dead segments).
  std::uint64_t last_of_the_dead() const;
  // Returns the end of the log, where the next record goes.
  LogPlace head() const { return {newest().sequence, newest().used_bytes}; }
  // Precondition: the segment was opened and not dropped.
  const SegmentUse& use_of(std::uint64_t sequence) const {
    return segments_[sequence - segments_.front().sequence];
  }
  // Adds dead bytes to the newest segment.
  void use(std::uint64_t bytes);

  enum class Effect : std::uint8_t {
    once,
    again,  // an `Added` of an existing job: copied by compaction
  };
  // Accounts for a record of `bytes` bytes, appended to the newest segment. `Added`, `Remembered`,
  // `Paused`, `PolicySet` and `Applied` become the live record of their id, tube, key or kind;
  // `Removed`, a pause of 0 and the removal of a value leave no live record. O(1); O(log n) for a
  // pause or a policy.
  Effect apply(const Fact& fact, std::uint64_t bytes);
  // The pause has ended, so its record is dead.
  void end_pause(std::string_view tube);

  std::uint64_t jobs() const { return jobs_; }
  // Returns the segment with the live record of this id; 0: the id has no live record. O(1).
  std::uint64_t segment_of(JobId id) const;
  const std::map<std::string, PauseInForce, std::less<>>& pauses() const { return pauses_; }

  const std::map<PolicyName, PolicyInForce>& policies() const { return policies_; }
  // Nothing if the log has no position of a replicated log.
  const std::optional<AppliedInForce>& applied() const { return applied_; }

  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  // An upper bound on the size of a live record.
  std::uint64_t largest_bytes() const { return std::min(largest_bytes_, live_bytes_); }
  // Returns the used bytes of the fullest segment.
  std::uint64_t largest_segment_bytes() const { return largest_segment_bytes_; }

 private:
  struct Location {
    std::uint32_t segment = 0;     // 0: no live record
    std::uint32_t bytes : 31 = 0;  // of the live record
    std::uint32_t is_job : 1 = 0;  // not a cooldown
  };
  // Ids are dense and increase, so locations are stored in pages of consecutive ids.
  static constexpr std::size_t kPageIds = 16;
  struct Page {
    std::array<Location, kPageIds> locations;
    std::uint32_t count = 0;
  };

  Effect added(JobId id, std::uint64_t bytes);
  void remembered(JobId id, std::uint64_t bytes);
  [[gnu::always_inline]] void place(Location& location, JobId id, std::uint64_t bytes, bool is_job);
  void removed(JobId id);
  void paused(const Paused& pause, std::uint64_t bytes);
  void policy_set(const PolicySet& set, std::uint64_t bytes);
  void set_applied(const Applied& position, std::uint64_t bytes);
  SegmentUse& segment(std::uint64_t sequence);
  void add_live(std::uint64_t sequence, std::uint64_t bytes);
  void subtract_live(std::uint64_t sequence, std::uint64_t bytes);

  std::deque<SegmentUse> segments_;
  std::unordered_map<std::uint64_t, Page> pages_;
  std::map<std::string, PauseInForce, std::less<>> pauses_;
  std::map<PolicyName, PolicyInForce> policies_;
  std::optional<AppliedInForce> applied_;
  std::uint64_t jobs_ = 0;  // with a live record; not counting cooldowns
  std::uint64_t used_bytes_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t largest_bytes_ = 0;  // of all records that were ever live
  std::uint64_t largest_segment_bytes_ = 0;
};

}  // namespace tubed::journal
