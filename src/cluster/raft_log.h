// RaftLog: the entries of this node's replicated log, in memory and on disk.
//
// All entries that are retained are in memory; the files are read at a start only. The protocol:
//
//  1. append() changes the entries in memory. Entries from some index on may be replaced.
//  2. flush(), at the end of a tick, writes what is not on disk as one batch, if no batch is in
//     flight (group commit). Each batch is written with a sync, and one is written at a time.
//  3. When it is written, stored() moves to the last entry of the batch that was not replaced
//     meanwhile, and the host is informed. It may then acknowledge these entries.
//  4. A batch for which no file has room waits until RaftFiles has made one. A write that the disk
//     has no room for is repeated as it was, every second. Any other failure ends the log: stored()
//     never moves again.
//  5. cut() drops entries from memory, and RaftFiles then drops the files without a needed entry.
//
// Replaced entries come back after a crash only if the batch that replaces them was not stored.
//
// Invariant: stored() <= last(), and every entry up to stored() is on disk as it is in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/time.h"
#include "cluster/raft_file.h"
#include "cluster/raft_files.h"
#include "cluster/raft_log_context.h"
#include "cluster/raft_recovery.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

class RaftLog {
 public:
  // Reads the log, or begins one in a directory without one; cuts a torn tail. Blocking. The error
  // is one line: for damage it names file and offset, and its kind is `damaged`. `storage` and
  // `host` outlive the log. A storage operation that is in progress when the log is destroyed must
  // never complete.
  static Result<std::unique_ptr<RaftLog>> open(journal::Storage& storage, RaftLogHost& host,
                                               const RaftLogOptions& options);

  // The torn tail that open() has cut.
  const std::optional<RaftLogCut>& cut_at_open() const { return cut_at_open_; }

  // The index of the oldest entry; last() + 1 if the log is empty. After a start it may be lower
  // than the last cut(), because whole files are dropped.
  Index first() const { return first_; }
  // The index of the newest entry, stored or not; first() - 1 if the log is empty.
  Index last() const { return first_ + slots_.size() - 1; }
  // Precondition: first() <= index <= last().
  const Entry& at(Index index) const;
  // 0: the entry is not here.
  Term term_of(Index index) const;
  // The bytes of the entries from `first` to `last`, as they are on disk; those that are not here
  // count as none. O(1).
  std::uint64_t bytes_of(Index first, Index last) const;
  // Every entry up to this index is on disk, as it is here.
  Index stored() const { return stored_; }

  // The entries from `first` on are these, from now on. Preconditions: this->first() <= first <=
  // last() + 1; the terms are not 0; the log is neither closing nor has it failed. O(entries).
  void append(Index first, std::span<const Entry> entries);
  // Entries before `first` are not needed any more. Entries that are not stored stay.
  void cut(Index first);
  // Empties the log: the next entry is base + 1. Blocking, and durable: after a crash the log is as
  // it was, or empty with this base. no_space: nothing has changed. After any other error the log
  // has failed. Precondition: idle().
  Result<void> reset(Index base);
  // Writes, when all entries are stored, a batch without entries, unless the last batch is one. It
  // proves that the batch before it was stored: if that is damaged later, the damage is not taken
  // for a torn tail. For a pause in the load.
  void seal() { seal_wanted_ = true; }

  // Takes the next steps that are due. Called at the end of each tick, after
  // RaftLogHost::request_flush(), and at next_deadline().
  void flush();
  // kNever: none.
  Time next_deadline() const;

  // No operation is under way. Entries may wait for space.
  bool idle() const { return !writing_ && !files_.busy(); }
  // Stores what was appended, seals the log, and calls `closed` when no operation is under way. If
  // the disk has no room or the log has failed, the rest is not stored. Nothing but flush() may be
  // called from then on.
  void close(std::function<void()> closed);

  // RaftLogOptions::log_bytes from now on.
  void set_log_bytes(std::uint64_t bytes) { context_.options.log_bytes = bytes; }
  // Of the retained entries, as they are on disk. The memory that they take is about the same.
  std::uint64_t bytes() const { return bytes_of(first_, last()); }
  bool exceeds_bound() const { return bytes() > context_.options.log_bytes; }
  // Of the entries that are not on disk.
  std::uint64_t unstored_bytes() const { return bytes_of(stored_ + 1, last()); }
  // Of all files.
  std::uint64_t file_bytes() const { return files_.file_bytes(); }
  // False: the disk is full. Entries that can wait, with this number of bytes in all, must not be
  // appended; the rest of the files is for those that must go on.
  bool has_room(std::uint64_t bytes) const { return files_.has_room(bytes); }
  bool full() const { return files_.full(); }
  // Since when entries are to be stored, and no batch was; kNever: none are.
  Time storing_since() const { return storing_since_; }
  bool failed() const { return context_.failed; }

 private:
  // The batch that was submitted last.
  struct Flight {
    RaftBatch batch;
    RaftFiles::Place place;
    Index first = 0;
    Index last = 0;
    Index valid = 0;  // later entries were replaced since
  };

  struct Slot {
    Entry entry;
    std::uint64_t end = 0;  // the bytes of this and of all entries before it, since the start
  };

  RaftLog(journal::Storage& storage, RaftLogHost& host, const RaftLogOptions& options);
  void take(FoundRaftLog found);
  void add(Entry entry);
  std::uint64_t end_of(Index index) const;
  void truncate(Index first);
  // A change is not on disk, and not in flight.
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

  Index first_ = 1;
  std::deque<Slot> slots_;
  std::uint64_t begin_ = 0;  // the end of the entry before the first
  Index stored_ = 0;
  Index next_write_ = 1;    // of the next batch: the first entry that was not submitted
  bool truncated_ = false;  // entries from next_write_ on that are not in memory were submitted
  std::uint64_t next_batch_ = 1;
  bool sealed_ = true;  // the last batch has no entries, or no batch exists
  bool seal_wanted_ = false;

  Flight flight_;
  Time storing_since_ = kNever;
  bool writing_ = false;      // flight_ is being written
  bool refused_ = false;      // flight_ has to be written again
  Time retry_at_ = kNever;    // when
  std::uint64_t wanted_ = 0;  // bytes that a batch needs and no file has room for; 0: nothing waits
  std::function<void()> closed_;
};

}  // namespace tubed::cluster
