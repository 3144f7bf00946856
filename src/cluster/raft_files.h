// RaftFiles: the files of an open Raft log: the head, to which batches are written, spare files
// that were made ahead of need, and older files. The protocol:
//
//  1. place_for() says where the next batch goes: to the head if it has the room, otherwise to the
//     first later file that has it. RaftLog writes the batch there and calls written(), which moves
//     the head. The files before the head are closed.
//  2. go_on() takes the next step in the background, one at a time. It keeps kSpareFiles spare
//     files. They are the reserve of a full disk, for entries that must go on.
//  3. An older file is dead when none of its entries is needed: all are before the cut or were
//     replaced by entries of a durable batch. Only the oldest file is ever dropped, and only after
//     a batch was written to a later file. It becomes a spare file under a new number if one is
//     lacking, and is removed otherwise.
//  4. If the disk refuses a step, the log is full: the host is informed, and has_room() is false.
//     The step is tried again every second, and a dead file is reused at once. When the spare files
//     are there again, the log is no longer full.
//
// Invariant: the numbers of the files have no gap.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/time.h"
#include "cluster/entry_places.h"
#include "cluster/raft_file.h"
#include "cluster/raft_log_context.h"
#include "cluster/raft_recovery.h"
#include "cluster/types.h"

namespace tubed::cluster {

class RaftFiles {
 public:
  explicit RaftFiles(RaftLogContext& context) : context_(context) {}
  // Continues with the files that `found` describes, after repair_raft_log(). Blocking: opens the
  // head and the spare files. Precondition: it has no files.
  Result<void> adopt(const FoundRaftLog& found);

  struct Place {
    journal::FileId file = 0;
    std::uint64_t number = 0;  // of the file
    std::uint64_t offset = 0;
    std::uint64_t room = 0;  // from `offset` to the end of the file
  };
  // Where a batch of that many bytes goes. Nothing: no file has the room.
  std::optional<Place> place_for(std::uint64_t bytes) const;
  // A batch of entries from `first` on was written, durably, to that file; it ends at `end`.
  void written(std::uint64_t number, std::uint64_t end, Index first, std::uint64_t entries);

  // Entries before `first` are not needed. The files go in the background: go_on().
  void cut(Index first) { places_.cut(first); }
  // As a blocking operation, makes a file with this batch, which begins after the file's header and
  // makes every earlier batch void. It is the head from then on. no_space: nothing has changed.
  // Precondition: not busy.
  Result<void> reset(RaftBatchHeader batch);

  // The next step. `wanted`: a batch of that many bytes waits for room; 0: none does.
  void go_on(Time now, std::uint64_t wanted);
  // An operation in the background is under way.
  bool busy() const { return busy_; }
  // When a step that was refused is tried again; kNever: none was, or that is under way.
  Time retry_at() const { return refused_ && !busy_ ? retry_at_ : kNever; }

  // The disk had no room for a write, or has taken it after all.
  void refuse_write(const std::string& reason);
  void accept_write();

  bool full() const { return full_; }
  bool has_room(std::uint64_t bytes) const;
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct File {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;
    std::optional<journal::FileId> id;  // nothing: it is closed
  };

  void add(const File& file);
  void drop_oldest();
  void close_before_head();
  std::uint64_t next_number() const;
  // Spare files of a useful length.
  std::size_t spares() const;
  std::uint64_t free_bytes() const;
  bool oldest_is_dead() const;
  void make_spare(std::uint64_t bytes);
  void drop_dead();
  void remove_dead();
  bool ended(const journal::Outcome& outcome);
  void refuse(const std::string& reason);
  void note_full(const std::string& reason);
  void note_room();

  RaftLogContext& context_;
  std::deque<File> files_;
  std::size_t head_ = 0;  // index in files_
  EntryPlaces places_;
  std::uint64_t file_bytes_ = 0;
  bool busy_ = false;
  bool full_ = false;
  bool refused_ = false;       // a step; the next is at retry_at_
  bool half_removed_ = false;  // the oldest file may be gone, though not durably
  bool write_refused_ = false;
  Time retry_at_ = kNever;
};

}  // namespace tubed::cluster
