// Journal: the log of facts on disk.
//
// The facts of one tick are written in one batch, while the next tick runs. The journal also keeps
// the log short (compaction) and keeps room ahead of it (preallocator). It has one caller, on one
// thread.
//
// Invariant: facts become durable in the order in which they were told.
// Invariant: no segment goes before what replaces it is on the disk.
// Invariant: after a failure durable() never moves again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "journal/batch.h"
#include "journal/commit_delay.h"
#include "journal/preallocator.h"
#include "journal/recovery.h"
#include "journal/segment_liveness.h"
#include "journal/storage.h"

namespace tubed::journal {

struct Options {
  // When facts are durable. Zero: when the disk has them. Else when the kernel has them; the disk
  // is told to take them that much later, or never for Duration::max().
  Duration sync{};
  std::uint64_t segment_bytes = 10 << 20;
  std::uint64_t max_bytes = 0;  // of all files; 0: no bound
  std::uint64_t directory = 0;  // the identity of a journal that is new
  WallClock clock;              // when it is opened; from then on set_clock() says
};

// What the journal needs from the program that runs it.
class JournalHost {
 public:
  // Something has changed, such as durable() or the free space: flush() is to be called soon.
  virtual void request_flush() = 0;
  // Nothing more can be made durable. Called once.
  virtual void report_failure(const std::string& reason) = 0;
  // Writing waits for space on the disk, or no longer does.
  virtual void report_full(bool full, const std::string& reason) = 0;
  // Emits the `Added` that describes this job as it is now. Precondition: the job exists.
  virtual void describe_job(JobId id, FactSink& sink) = 0;
  // Emits the `Placed` that describes where this job rests, if an earlier fact may have given a
  // time for it. Precondition: the job exists.
  virtual void describe_delay(JobId id, FactSink& sink) = 0;
  // The time of the tick.
  virtual Time now() const = 0;
  // The wall clock as it is now. Called once in each tick that appends a fact.
  virtual WallClock wall_clock() const = 0;

 protected:
  ~JournalHost() = default;
};

class Journal final : public FactLog {
 public:
  // Goes on where the log ended, `found` by examine() and mended by repair(). `storage` and `host`
  // outlive it; a storage operation that is under way when it goes must never complete.
  static Result<std::unique_ptr<Journal>> open(Storage& storage, JournalHost& host,
                                               const Options& options, Examined found);

  void set_options(const Options& options);

  // The wall clock as it is now. If it was stepped, what is written from here on follows it, and
  // the deadlines that were written by the old one are written again, a slice at each flush().
  void set_clock(const WallClock& clock);

  void fact(const Fact& fact) override;

  // Facts before this one were submitted to the disk.
  Lsn submitted() const { return submitted_; }

  // What must not wait goes on from what is kept back.
  bool has_room_for(std::size_t body_bytes) const override;
  bool congested() const override;
  bool flush() override;
  Time next_deadline() const override;
  // Writes the mark of an orderly stop after everything and syncs, whatever the mode.
  void close(std::function<void()> closed) override;

  LogStats stats() const override;
  std::uint64_t segment_of(JobId id) const override { return liveness_.segment_of(id); }

 private:
  // Consecutive records of one segment that are written together.
  struct Part {
    std::uint64_t segment;
    std::uint64_t offset;
    Lsn number;         // of its first fact
    JobId next_job_id;  // before its first fact
    Batch batch;
    Lsn end_number;      // behind its last fact
    std::uint64_t jobs;  // behind its last fact
    bool clean = false;
    // Since it is on its way:
    bool syncs = false;
    Lsn says_durable = 0;
    std::uint64_t end() const { return offset + batch.bytes(); }
    std::uint32_t facts() const { return static_cast<std::uint32_t>(end_number - number); }
  };

  Journal(Storage& storage, JournalHost& host, const Options& options, Examined found);

  void append(const Fact& fact, std::uint64_t record_bytes);
  Part& part_for(std::uint64_t record_bytes);

  // The commit: one batch of parts at a time is on its way.
  bool syncs_by_interval() const {
    return options_.sync > Duration() && options_.sync != Duration::max();
  }
  bool commit_waits(Time now);
  void begin_commit();
  void write_part();
  void part_written(const Outcome& outcome);
  void commit_written();
  void sync_if_wanted();
  bool is_oldest_unsynced(std::uint64_t segment) const;
  void leave_segments();
  void trim_left();
  void go_on_stopping();
  void fail(const std::string& reason);

  // Space (compaction.cc)
  std::uint64_t chunk_bytes() const;
  std::uint64_t free_bytes() const { return preallocator_.ahead_of(head_); }
  std::uint64_t idle_waste() const;
  std::uint64_t room_to_free_oldest() const;
  std::uint64_t reserve_bytes() const;
  bool has_room_for_bytes(std::uint64_t record_bytes) const;
  void use_slack(std::uint64_t bytes);
  std::int64_t slack_kept_back() const;
  std::uint64_t file_bytes() const { return closed_bytes_ + preallocator_.bytes(); }
  void grow_if_needed();
  void grown(const Outcome& outcome);
  void no_space(const std::string& reason);
  void has_space();
  bool compaction_wanted() const;
  bool compaction_comes_first() const;
  bool compact();
  bool migrate_pauses();
  void drop_dead();
  void reuse_dead();
  void remove_dead();
  void dead_is_gone();

  // A wall clock that was stepped (clock_step.cc)
  bool rewriting_waits() const;
  bool rewrite_deadlines();
  bool rewrite_delays(FactSink& sink);
  bool rewrite_pauses(FactSink& sink);

  Storage& storage_;
  JournalHost& host_;
  Options options_;
  WallClock clock_;
  bool clock_is_read_ = false;  // in this tick
  std::uint64_t directory_;
  SegmentLiveness liveness_;
  Preallocator preallocator_;

  LogPlace head_;  // where the next record goes
  Lsn submitted_;
  Lsn written_;     // the kernel has what is before it
  Lsn synced_;      // the disk has what is before it
  Lsn marked_ = 0;  // a batch that is written says that the disk has what is before it
  JobId next_job_id_;

  std::vector<Part> pending_;  // the turn's
  std::uint64_t pending_bytes_ = 0;
  // While positive, free_bytes() is more than reserve_bytes(), for sure: congested() is asked
  // before each command and need not work both out.
  mutable std::int64_t slack_ = 0;
  std::uint64_t client_bytes_ = 0;  // of facts since the last slice of compaction
  std::vector<Part> commit_;        // on its way
  std::size_t part_index_ = 0;
  std::uint64_t commit_facts_ = 0;
  Time commit_began_;
  CommitDelay commit_delay_;
  bool committing_now_ = false;
  bool starved_ = false;      // the part has no place yet
  bool refused_ = false;      // the disk had no room for the part
  bool catching_up_ = false;  // the mode has become "always": what is older comes first

  // Segments that the log has left, to be trimmed one after the other.
  struct Left {
    Preallocator::OpenFile file;
    std::uint64_t used_bytes;
    Lsn end;
  };
  std::deque<Left> left_;
  std::deque<Lsn> ends_;            // of segments behind which the head is, and that are not left
  std::uint64_t closed_bytes_ = 0;  // of files that are not in the preallocator
  // Bytes behind the last record of such a file, by segment, if it has any.
  std::map<std::uint64_t, std::uint64_t> untrimmed_;
  bool trimming_ = false;
  bool syncing_ = false;
  bool sync_wanted_ = false;
  Time sync_at_ = kNever;
  std::uint64_t written_segment_ = 0;

  bool full_ = false;
  bool at_own_bound_ = false;  // it is journal.max_bytes that is in the way, not the disk
  Time retry_at_ = kNever;

  // Where compaction stands in the oldest segment.
  std::size_t run_ = 0;
  std::uint64_t run_offset_ = 0;
  std::string pause_behind_;
  std::optional<Lsn> dead_since_;  // the oldest segment
  bool removing_ = false;
  bool removal_refused_ = false;  // for want of space, and to be tried again

  // How far the deadlines are written again.
  struct Rewriting {
    std::uint64_t segment = 0;  // of the jobs that are looked at, by their newest `Added`
    std::size_t run = 0;
    std::uint64_t run_offset = 0;
    std::uint64_t last_segment = 0;  // what follows was written by the clock of today
    std::string pause_after;
  };
  std::optional<Rewriting> rewriting_;

  bool failed_ = false;
  std::function<void()> stopped_;
  bool stop_written_ = false;

  ShortTimes commit_times_;
  Counts commit_records_;
  std::uint64_t records_written_ = 0;
  std::uint64_t records_migrated_ = 0;
  std::uint64_t commits_ = 0;
};

}  // namespace tubed::journal
