// Ledger: which segment is needed for what.
//
// For every job it knows the segment that holds its newest `Added` record, its home; likewise for
// every pause in force. A segment is dead when it is nobody's home. It owns no file.
//
// Invariant: a segment's live bytes are the bytes of the records that have it as their home.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/fact.h"

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
  std::vector<IdRun> added;  // ids that had their home here at some time, in the order of the log
};

struct PauseInForce {
  Seconds duration;
  Time until;
  std::uint64_t home = 0;
  std::uint64_t bytes = 0;  // of its record
};

class Ledger {
 public:
  // Segments are opened in the order of their numbers, without a gap.
  void open_segment(std::uint64_t sequence, std::uint64_t used_bytes);
  // Precondition: it is dead, and not the only one.
  void drop_oldest();

  bool empty() const { return segments_.empty(); }
  const SegmentUse& oldest() const { return segments_.front(); }
  const SegmentUse& newest() const { return segments_.back(); }
  // Precondition: it is there.
  const SegmentUse& use_of(std::uint64_t sequence) const {
    return segments_[sequence - segments_.front().sequence];
  }
  // The newest segment has grown.
  void use(std::uint64_t bytes);

  enum class Applied : std::uint8_t {
    once,
    again,  // an `Added` of a job that has a home: compaction has copied it
  };
  // A record of `bytes` bytes is at the end of the newest segment. Of an `Added` or a pause that
  // segment is the home from now on; a `Removed`, or a pause of 0, ends a home. O(1), a pause
  // O(log pauses).
  Applied apply(const Fact& fact, std::uint64_t bytes);
  // The pause is over: no segment is its home.
  void end_pause(std::string_view tube);

  std::uint64_t jobs() const { return jobs_; }
  // The segment that is the job's home; 0: there is no such job. O(1).
  std::uint64_t home_of(JobId id) const;
  const std::map<std::string, PauseInForce, std::less<>>& pauses() const { return pauses_; }

  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  // No record that is alive is larger.
  std::uint64_t largest_bytes() const { return std::min(largest_bytes_, live_bytes_); }
  // No segment has more in it.
  std::uint64_t largest_segment_bytes() const { return largest_segment_bytes_; }

 private:
  struct Home {
    std::uint32_t segment = 0;  // 0: none
    std::uint32_t bytes = 0;
  };
  // Ids are dense and grow: homes stand in pages of consecutive ids.
  static constexpr std::size_t kPageIds = 16;
  struct Page {
    std::array<Home, kPageIds> homes;
    std::uint32_t count = 0;
  };

  Applied added(JobId id, std::uint64_t bytes);
  void removed(JobId id);
  void paused(const Paused& pause, std::uint64_t bytes);
  SegmentUse& segment(std::uint64_t sequence);
  void settle(std::uint64_t sequence, std::uint64_t bytes);
  void leave(std::uint64_t sequence, std::uint64_t bytes);

  std::deque<SegmentUse> segments_;
  std::unordered_map<std::uint64_t, Page> pages_;
  std::map<std::string, PauseInForce, std::less<>> pauses_;
  std::uint64_t jobs_ = 0;  // that have a home
  std::uint64_t used_bytes_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t largest_bytes_ = 0;  // of all records that ever were alive
  std::uint64_t largest_segment_bytes_ = 0;
};

}  // namespace tubed::journal
