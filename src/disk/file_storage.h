// FileStorage: implements journal/storage.h for a directory of this machine.
//
// It owns the descriptor of the directory, the lock on it and the open files, and knows nothing
// about their contents. Background operations are blocking calls in libuv's thread pool; they
// complete on the loop's thread, the only thread that may use this class. file_storage.cc explains
// how operations become durable.
//
// The lock is a record lock (fcntl) on the file `lock` in the directory, as in beanstalkd, so a
// beanstalkd and a tubed exclude each other. Such a lock ends when the process closes any
// descriptor of the file, does not exclude its own process, and is not inherited by a child: open a
// directory only once, and after going into the background.
//
// no_space, as defined by journal/storage.h, means ENOSPC, EDQUOT or EFBIG, or that no descriptor
// is free. The sync of a file that already had contents never returns it (sync_file in
// file_calls.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "disk/directory_lock.h"
#include "journal/storage.h"
#include "loop/loop.h"
#include "os/descriptor.h"

namespace tubed::disk {

class FileStorage final : public journal::Storage {
 public:
  enum class Mode : std::uint8_t {
    owner,        // an existing directory; locked until the storage is destroyed
    create,       // a directory that is empty or does not exist yet; locked as well
    create_part,  // the same, within the directory of a journal or of a node
    read_only,    // not locked; operations that change something are bugs
  };
  // If root opens a directory of another user, its new files belong to that user, who could not
  // open them otherwise; but not those of `create`.

  // Opens the directory. The error is one line that names the directory and the reason, or the
  // process that has locked it. Makes the process ignore SIGXFSZ: exceeding its limit on file sizes
  // then gives no_space. `loop` outlives the storage.
  static Result<std::unique_ptr<FileStorage>> open(loop::Loop& loop, const std::string& directory,
                                                   Mode mode);
  // Precondition: not busy(): a thread may still read the bytes of a write.
  ~FileStorage() override;

  // The note in the file `lock` about the last owner; only for Mode::owner.
  //
  // True if Mode::create or create_part made the directory, and no owner has called record_boot()
  // since.
  bool is_copy() const;
  // True if no owner has called record_boot() since the machine was started, or if that is unknown:
  // bytes that were written but not synced may be lost.
  bool first_of_boot() const;
  void record_boot();

  // If most writes will be synced, also fills allocated space with zeros and syncs it, in the
  // background. A synced write into such space changes no metadata of the file system and takes
  // half the time, but every byte is written twice. Applies to operations started later.
  void expect_synced_writes(bool expected) { zero_fill_ = expected; }

  // True while a background operation is pending; run the loop to complete it.
  bool busy() const { return operations_ != 0; }

  Result<std::vector<journal::FileInfo>> list() override;
  Result<journal::FileId> open(const std::string& name) override;
  void close(journal::FileId file) override;
  Result<std::string> read(journal::FileId file) override;
  Result<void> truncate(journal::FileId file, std::uint64_t bytes) override;
  Result<void> sync_now(journal::FileId file) override;
  // Fails if the name exists, like create().
  Result<void> store(const std::string& name, std::string_view contents) override;
  Result<void> remove_now(const std::string& name) override;
  Result<void> move(const std::string& from, const std::string& to) override;

  void create(const std::string& name, std::string head, std::uint64_t bytes,
              journal::Created done) override;
  void allocate(journal::FileId file, std::uint64_t from, std::uint64_t to,
                journal::Done done) override;
  void write(journal::FileId file, std::uint64_t offset, std::vector<std::string_view> pieces,
             journal::Sync sync, journal::Done done) override;
  void sync(journal::FileId file, journal::Done done) override;
  void trim(journal::FileId file, std::uint64_t bytes, journal::Done done) override;
  void remove(const std::string& name, journal::Done done) override;
  void reuse(const std::string& from, const std::string& to, std::string head, std::uint64_t bytes,
             journal::Created done) override;

 private:
  struct ReuseResult {
    journal::Outcome outcome;
    os::Descriptor descriptor;
    bool removed_unsynced = false;  // the old name is removed, perhaps not durably
  };
  struct File {
    os::Descriptor descriptor;
    std::string path;
    std::uint32_t operations = 0;
    // Writes without a sync: started, completed, and covered by a later sync. See "Which sync
    // covers which write" in file_storage.cc.
    std::uint64_t unsynced_started = 0;
    std::uint64_t unsynced_done = 0;
    std::uint64_t unsynced_covered = 0;
  };

  FileStorage(loop::Loop& loop, std::string path, os::Descriptor directory, os::Descriptor lock,
              Mode mode);

  journal::FileId add_file(os::Descriptor descriptor, const std::string& name);
  File& file_of(journal::FileId id);
  File& writable_file_of(journal::FileId id);
  void assert_writable(std::string_view name) const;

  // Callable by any thread: these functions use only directory_ and path_.
  std::string path_of(std::string_view name) const;
  journal::Outcome sync_directory() const;
  journal::Outcome make_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                             bool fill, os::Descriptor& made) const;
  journal::Outcome fill_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                             bool fill, os::Descriptor& made) const;
  journal::Outcome publish(const std::string& name, journal::Outcome filled) const;
  void reuse_file(const std::string& from, const std::string& to, std::string_view head,
                  std::uint64_t bytes, ReuseResult& reused) const;
  journal::Outcome remove_unfinished(const std::string& name) const;
  journal::Outcome unlink(const std::string& name) const;

  // Calls `work` in a thread of the pool, then `finish` with its result on the loop's thread.
  template <class Work, class Finish>
  void run_in_pool(Work work, Finish finish);
  template <class Work>
  void run_on_file(journal::FileId id, Work work, journal::Done done);
  void record_removal(const std::string& name, bool removed_unsynced);
  static journal::Done covering_sync(File& file, journal::Done done);

  loop::Loop& loop_;
  const std::string path_;
  const os::Descriptor directory_;
  const os::Descriptor lock_;  // empty: read_only
  NewOwner new_owner_;         // set once, by open()
  const Mode mode_;
  std::string last_owner_;  // the contents of the file `lock` when it was locked
  // Threads of the pool hold references to elements, so the elements must not move.
  std::unordered_map<journal::FileId, File> files_;
  journal::FileId next_file_ = 1;
  std::unordered_set<std::string> unsynced_removals_;  // names whose removal is not yet durable
  std::uint32_t operations_ = 0;  // background operations on files and on the directory
  bool zero_fill_ = false;
};

}  // namespace tubed::disk
