// RaftLog: the entries of this node's replicated log, in memory and on disk.
//
// All retained entries are in memory; the files are read only at start. The protocol:
//
//  1. append() changes the entries in memory. It may replace entries.
//  2. flush(), at the end of a tick, writes all unstored entries as one batch, if no batch is in
//     flight (group commit). Each batch is written with a sync, one batch at a time.
//  3. When the batch is written, stored() moves to its last entry that was not replaced meanwhile,
//     and the host is informed. It may then acknowledge these entries.
//  4. A batch for which no file has room waits until RaftFiles has made one. A write for which the
//     disk has no room is repeated unchanged, every second. Any other failure ends the log:
//     stored() never moves again.
//  5. cut() drops entries from memory, and RaftFiles then drops the files without a needed entry.
//
// Replaced entries reappear after a crash only if the batch that replaces them was not stored.
//
// Invariant: stored() <= last(), and every entry up to stored() is on disk as it is in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/time.h"
#include "cluster/raft_entries.h"
#include "cluster/raft_file.h"
#include "cluster/raft_files.h"
#include "cluster/raft_log_context.h"
#include "cluster/raft_recovery.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

class RaftLog {
 public:
  // Reads the log, or creates it in a directory without a log; cuts a torn tail. Blocking. The
  // error is one line; for damage it names file and offset and has the kind `damaged`. `storage`
  // and `host` outlive the log. A storage operation still in progress when the log is destroyed
  // must never complete.
  static Result<std::unique_ptr<RaftLog>> open(journal::Storage& storage, RaftLogHost& host,
                                               const RaftLogOptions& options);

  // The torn tail that open() has cut.
  const std::optional<RaftLogCut>& cut_at_open() const { return cut_at_open_; }

  // Returns the index of the oldest entry; last() + 1 if the log is empty. After a start it may be
  // lower than the last cut(), because whole files are dropped.
  Index first() const { return entries_.first(); }
  // Returns the index of the newest entry, stored or not; first() - 1 if the log is empty.
  Index last() const { return entries_.last(); }
  // Precondition: first() <= index <= last().
  const Entry& at(Index index) const { return entries_.at(index); }
  // Returns 0 if the entry is not retained.
  Term term_of(Index index) const { return entries_.term_of(index); }
  // Returns the bytes on disk of the entries from `first` to `last`, not counting entries that are
  // not retained. O(1).
  std::uint64_t bytes_of(Index first, Index last) const { return entries_.bytes_of(first, last); }
  // Every entry up to this index is on disk as it is in memory.
  Index stored() const { return stored_; }

  // Replaces the entries from `first` by these. Preconditions: this->first() <= first <= last() +
  // 1; the terms are not 0; the log is not closing and has not failed. O(entries).
  void append(Index first, std::span<const Entry> entries);
  // Entries before `first` are no longer needed. Keeps entries that are not stored.
  void cut(Index first);
  // Empties the log: the next entry is base + 1. Blocking and durable: after a crash the log is as
  // it was, or empty with this base. no_space: nothing has changed. After any other error the log
  // has failed. Precondition: idle().
  Result<void> reset(Index base);
  // Once all entries are stored, writes a batch without entries, unless the last batch is such a
  // batch. It proves that the batch before it was stored: later damage to that batch is not
  // mistaken for a torn tail. For a pause in the load.
  void seal() { seal_wanted_ = true; }

  // Takes the next steps that are due. Called at the end of each tick, after
  // RaftLogHost::request_flush(), and at next_deadline().
  void flush();
  // kNever: no deadline.
  Time next_deadline() const;

  // True if no operation is running. Entries may wait for space.
  bool idle() const { return !writing_ && !files_.busy(); }
  // Stores the appended entries, seals the log, and calls `closed` when no operation is running. If
  // the disk has no room or the log has failed, the rest is not stored. Afterwards only flush() may
  // be called.
  void close(std::function<void()> closed);

  // Changes RaftLogOptions::log_bytes.
  void set_log_bytes(std::uint64_t bytes) { context_.options.log_bytes = bytes; }
  // Returns the bytes of the retained entries on disk. They take about as much memory.
  std::uint64_t bytes() const { return bytes_of(first(), last()); }
  bool exceeds_bound() const { return bytes() > context_.options.log_bytes; }
  // Returns the bytes of the entries that are not on disk.
  std::uint64_t unstored_bytes() const { return bytes_of(stored_ + 1, last()); }
  // Returns the total length of all files.
  std::uint64_t file_bytes() const { return files_.file_bytes(); }
  // Returns false if the disk is full: entries that can wait, with this total number of bytes, must
  // then not be appended. The rest of the files is for entries that must not wait.
  bool has_room(std::uint64_t bytes) const { return files_.has_room(bytes); }
  bool full() const { return files_.full(); }
  // Returns how long entries have been waiting without a batch being stored; 0: no entries wait.
  Duration oldest_write() const {
    return storing_since_ == kNever ? Duration() : context_.host.now() - storing_since_;
  }
  bool failed() const { return context_.failed; }

 private:
  // The last submitted batch.
  struct Flight {
    RaftBatch batch;
    RaftFiles::Place place;
    Index first = 0;
    Index last = 0;
    Index valid = 0;  // later entries were replaced meanwhile
  };

  RaftLog(journal::Storage& storage, RaftLogHost& host, const RaftLogOptions& options);
  void take(FoundRaftLog found);
  void truncate(Index first);
  // True if a change is neither on disk nor in flight.
  bool has_unwritten() const { return next_write_ <= last() || truncated_; }
  void write_next();
  void write_entries();
  bool begin_batch(std::uint64_t bytes);
  void finish_batch(Index last);
  void write();
  void written(const journal::Outcome& outcome);
  void go_on_closing();

  RaftLogContext context_;
  RaftFiles files_;
  std::optional<RaftLogCut> cut_at_open_;

  RaftEntries entries_;
  Index stored_ = 0;
  Index next_write_ = 1;    // the first entry of the next batch: not yet submitted
  bool truncated_ = false;  // submitted entries from next_write_ are no longer in memory
  std::uint64_t next_batch_ = 1;
  bool sealed_ = true;  // the last batch has no entries, or no batch exists
  bool seal_wanted_ = false;

  Flight flight_;
  Time storing_since_ = kNever;
  bool writing_ = false;      // flight_ is being written
  bool refused_ = false;      // flight_ must be written again
  Time retry_at_ = kNever;    // when to write it
  std::uint64_t wanted_ = 0;  // size of a batch for which no file has room; 0: none waits
  std::function<void()> closed_;
};

}  // namespace tubed::cluster
