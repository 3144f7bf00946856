// RaftFiles: the files of an open Raft log: the head, to which batches are written, spare files
// made ahead of need, and older files. The protocol:
//
//  1. place_for() says where the next batch goes: to the head if it has room, otherwise to the
//     first later file with room. RaftLog writes the batch there and calls written(), which moves
//     the head. The files before the head are closed.
//  2. go_on() takes the next step in the background, one at a time. It keeps kSpareFiles spare
//     files. They are the reserve on a full disk, for entries that must not wait.
//  3. An older file is dead when its entries are no longer needed: all are before the cut or were
//     replaced by entries of a durable batch. Only the oldest file is ever dropped, and only after
//     a batch was written to a later file. It becomes a spare file under a new number if a spare
//     file is missing; otherwise it is removed.
//  4. If the disk refuses a step, the log is full: the host is informed, and has_room() is false.
//     The step is retried every second, and a dead file is reused at once. When the spare files
//     exist again, the log is no longer full.
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
  // Continues with the files that `found` describes, after repair_raft_log(). Opens the head and
  // the spare files. Blocking. Precondition: it has no files.
  Result<void> adopt(const FoundRaftLog& found);

  struct Place {
    journal::FileId file = 0;
    std::uint64_t number = 0;  // of the file
    std::uint64_t offset = 0;
    std::uint64_t room = 0;  // from `offset` to the end of the file
  };
  // Returns where a batch of this many bytes goes. Nothing: no file has room.
  std::optional<Place> place_for(std::uint64_t bytes) const;
  // A batch with entries from `first` was written, durably, to this file; it ends at `end`.
  void written(std::uint64_t number, std::uint64_t end, Index first, std::uint64_t entries);

  // Entries before `first` are no longer needed. go_on() drops their files in the background.
  void cut(Index first) { places_.cut(first); }
  // Creates a file with this batch after its header, which voids every earlier batch. The file
  // becomes the head. no_space: nothing has changed. Blocking. Precondition: not busy.
  Result<void> reset(RaftBatchHeader batch);

  // Takes the next step. `wanted`: the size of a batch that waits for room; 0: none waits.
  void go_on(Time now, std::uint64_t wanted);
  // True while a background operation is running.
  bool busy() const { return busy_; }
  // Returns when a refused step is retried; kNever: no step was refused, or the retry is under way.
  Time retry_at() const { return refused_ && !busy_ ? retry_at_ : kNever; }

  // The disk had no room for a write, or has accepted it on a retry.
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
    std::optional<journal::FileId> id;  // nothing: closed
  };

  void add(const File& file);
  void drop_oldest();
  void close_before_head();
  std::uint64_t next_number() const;
  // Counts the spare files of a useful length.
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
  bool refused_ = false;       // the last step; retried at retry_at_
  bool half_removed_ = false;  // the oldest file may be removed, but not durably
  bool write_refused_ = false;
  Time retry_at_ = kNever;
};

}  // namespace tubed::cluster
