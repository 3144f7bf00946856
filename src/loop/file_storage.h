// FileStorage: the files of one directory of this machine, as journal/storage.h asks for them.
//
// It owns the directory's descriptor, its lock and the files that are open, and knows nothing of
// what they hold. What runs in the background runs on libuv's pool of threads with ordinary
// blocking calls, and is completed on the loop's thread. Threads of the pool see the arguments of
// their operation, the file's descriptor and path, and nothing else: a piece of a write is only
// looked at, and who counts references to it does so on the loop's thread.
//
// The lock is that of beanstalkd: a record lock (fcntl) on the file `lock`, so that the two keep
// each other out. Such a lock ends when this process closes any descriptor of that file, and does
// not keep out its own process: open a directory once. It is not inherited by a forked child: open
// it after going into the background.
//
// Where storage.h says no_space it means ENOSPC, EDQUOT or EFBIG, or that no descriptor is left. A
// sync() of a file that had contents before is the exception: whatever the reason, what it should
// have covered may be gone and cannot be tried again, so that is `failed`. A synced write can: what
// it covers is what it writes.
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
#include "journal/storage.h"
#include "loop/loop.h"
#include "os/descriptor.h"

namespace tubed::loop {

class FileStorage final : public journal::Storage {
 public:
  enum class Mode : std::uint8_t {
    owner,      // an existing directory, locked for as long as the storage lives
    create,     // the same of a new directory: not there yet, or empty
    read_only,  // unlocked; whatever would change something is a bug of the caller
  };

  // The error is one line with the directory and what is wrong with it. Has the process ignore
  // SIGXFSZ, so that its limit of a file's size is no_space. `loop` outlives the storage.
  static Result<std::unique_ptr<FileStorage>> open(Loop& loop, const std::string& directory,
                                                   Mode mode);
  // Precondition: not busy(). What is being written must not be freed under a thread's hands.
  ~FileStorage() override;

  // The rest of what the lock knows, of an owner. The directory was made by Mode::create, and no
  // owner has called note_boot() since.
  bool is_copy() const;
  // No owner has called note_boot() since the machine was started, as far as is known: what was
  // written before and not synced may be lost.
  bool first_of_boot() const;
  void note_boot();

  // Most writes will be synced: what is allocated from now on is filled with zeros and synced
  // ahead, in the background. A synced write into it then changes no metadata, which takes it half
  // the time, at the price of writing everything twice.
  void expect_synced_writes(bool expected) { fills_ahead_ = expected; }

  // Something in the background is not completed yet: turn the loop.
  bool busy() const { return under_way_ != 0; }

  Result<std::vector<journal::FileInfo>> list() override;
  Result<journal::FileId> open(const std::string& name) override;
  void close(journal::FileId file) override;
  Result<std::string> read(journal::FileId file) override;
  Result<void> truncate(journal::FileId file, std::uint64_t bytes) override;
  Result<void> sync_now(journal::FileId file) override;
  // The name must not be taken yet; the same for create().
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
  struct Reused {
    journal::Outcome outcome;
    os::Descriptor descriptor;
    bool half_removed = false;  // the old name is gone, perhaps not durably
  };
  struct File {
    os::Descriptor descriptor;
    std::string path;
    std::uint32_t under_way = 0;
    // Writes without a sync: asked for, done, and of those done how many a later sync has covered.
    // Until it is all that were asked for, a synced write cannot leave out what is older.
    std::uint64_t plain_asked = 0;
    std::uint64_t plain_done = 0;
    std::uint64_t plain_covered = 0;
  };

  FileStorage(Loop& loop, std::string path, os::Descriptor directory, os::Descriptor lock,
              Mode mode);

  journal::FileId adopt(os::Descriptor descriptor, const std::string& name);
  File& file_of(journal::FileId id);
  File& changeable_file_of(journal::FileId id);
  void assert_may_change(std::string_view name) const;

  // For any thread: they use nothing but directory_ and path_.
  std::string path_of(std::string_view name) const;
  journal::Outcome sync_directory() const;
  journal::Outcome make_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                             bool fill, os::Descriptor& made) const;
  journal::Outcome fill_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                             bool fill, os::Descriptor& made) const;
  journal::Outcome give_name(const std::string& name, journal::Outcome filled) const;
  void reuse_file(const std::string& from, const std::string& to, std::string_view head,
                  std::uint64_t bytes, Reused& reused) const;
  journal::Outcome clear(const std::string& name) const;
  journal::Outcome unlink(const std::string& name) const;

  // Calls `work` in a thread of the pool, and then `finish` with its result on the loop's.
  template <class Work, class Finish>
  void in_background(Work work, Finish finish);
  template <class Work>
  void in_background_on(journal::FileId id, Work work, journal::Done done);
  void note_half_removed(const std::string& name, bool half_removed);
  static journal::Done when_synced(File& file, journal::Done done);

  Loop& loop_;
  const std::string path_;
  const os::Descriptor directory_;
  const os::Descriptor lock_;  // empty: read_only
  const Mode mode_;
  std::string last_owner_;                           // what the lock said when it was taken
  std::unordered_map<journal::FileId, File> files_;  // threads of the pool hold on to elements
  journal::FileId next_file_ = 1;
  std::unordered_set<std::string> half_removed_;  // names that are gone, though not durably
  std::uint32_t under_way_ = 0;
  bool fills_ahead_ = false;
};

}  // namespace tubed::loop
