// TestDisk: one directory in memory that knows what is durable, and can fail, tear and lose.
//
// It owns the files and a queue of requested operations: run_one() and run_all() do them and call
// their completions. It has no thread and no clock, and the same calls with the same seed give the
// same disk.
//
// Every operation consists of steps: a write, of pieces of at most 512 bytes and then its sync; a
// creation, of a name, its contents, a sync, another name, and a sync of the directory. crash_at()
// switches the machine off between two steps: no operation proceeds or completes, and after_crash()
// returns the disk that the next process finds.
//
// It is as unfavourable as storage.h allows. A sync covers only data written before the sync was
// requested. Data that a failed sync should have covered never becomes durable while this process
// runs. A change of a name is durable only after a later sync of the directory. Data that was not
// synced is lost or kept piece by piece.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "journal/storage.h"
#include "tests/journal/test_file.h"

namespace tubed::journal {

// Operations that can be counted and made to fail. A write with Sync::yes is a `write` and a
// `sync`.
enum class Operation : std::uint8_t {
  // Blocking.
  list,
  open,
  read,
  truncate,
  sync_now,
  store,
  remove_now,
  move,
  // In the background.
  create,
  allocate,
  write,
  sync,
  trim,
  remove,
  reuse,
};
inline constexpr std::size_t kOperations = 15;

enum class Fate : std::uint8_t {
  power_loss,  // data that is not durable is kept, lost or torn, piece by piece
  kill,        // only the process ends: written data is there, but not yet durable
};

class TestDisk final : public Storage {
 public:
  using Contents = std::map<std::string, std::string>;

  TestDisk();
  // A disk with these durable files.
  explicit TestDisk(const Contents& files);
  TestDisk(TestDisk&& other) noexcept;
  TestDisk& operator=(TestDisk&& other) noexcept;
  ~TestDisk() override;

  Storage& storage() { return *this; }

  // --- Doing requested operations

  // Does the oldest operation; after shuffle(), any operation that is the oldest of its file.
  // Returns false if no operation is pending or the machine is off.
  bool run_one();
  // Does all pending operations, including those that completions request.
  void run_all();
  std::size_t pending() const;
  // Lets operations on different files overtake each other.
  void shuffle(std::uint64_t seed) { shuffle_.emplace(seed); }

  // --- Crashes

  // Returns the number of steps done so far.
  std::uint64_t steps() const { return steps_; }
  // Switches the machine off before this step, counted from 0 since the creation of the disk.
  void crash_at(std::uint64_t step) { crash_at_ = step; }
  // True if the machine is off: blocking operations fail, background operations never complete.
  bool off() const { return off_; }
  // Returns the disk that the next process finds. Requested operations that have not begun may have
  // progressed to any degree, because they run in parallel. Switches this disk off.
  TestDisk after_crash(Random& random, Fate fate);

  // --- Faults

  // Lets `passes` operations of this kind succeed, then makes the next `times` fail. The reason
  // ends with `why`. A failed write has written a part, or nothing for lack of space. For lack of
  // space, a removal has removed the name, a reuse gets one step further each time, and a trim has
  // synced.
  void fail_after(Operation operation, std::uint64_t passes,
                  Outcome::Kind kind = Outcome::Kind::failed,
                  std::string why = "Input/output error", std::uint64_t times = 1);
  // Ends the failures of this kind of operation.
  void heal(Operation operation) { faults_[index_of(operation)].reset(); }
  // Limits the total size of all files. Existing contents stay.
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  // Makes another process take each byte that is or becomes free.
  void eat_space() { eaten_ = true; }
  // Makes that process leave this number of bytes.
  void leave_space(std::uint64_t bytes) { left_ += bytes; }

  // --- Contents

  // The contents that a reader sees now, which may not be durable. Precondition of contents(): the
  // file exists.
  const std::string& contents(const std::string& name) const;
  Contents files() const;
  // Returns the files after a power loss that loses all data that is not durable.
  Contents durable_files() const;
  bool has(const std::string& name) const { return names_.contains(name); }
  std::vector<std::string> names() const;
  std::uint64_t total_bytes() const;

  // Damages a file, durably. Precondition: the file exists and has that byte.
  void flip(const std::string& name, std::uint64_t offset, std::uint8_t mask = 0xff);
  void cut(const std::string& name, std::uint64_t bytes);
  void lose(const std::string& name);
  // Creates or replaces a durable file.
  void place(const std::string& name, std::string contents);

  // --- Counts

  // Returns the number of operations begun, including failed ones.
  std::uint64_t count(Operation operation) const { return counts_[index_of(operation)]; }
  // Returns one line per operation that changes a file: "write journal.0000000001 64+128 sync".
  std::vector<std::string> take_log();

  // --- storage.h

  Result<std::vector<FileInfo>> list() override;
  Result<FileId> open(const std::string& name) override;
  void close(FileId file) override;
  Result<std::string> read(FileId file) override;
  Result<void> truncate(FileId file, std::uint64_t bytes) override;
  Result<void> sync_now(FileId file) override;
  Result<void> store(const std::string& name, std::string_view contents) override;
  Result<void> remove_now(const std::string& name) override;
  Result<void> move(const std::string& from, const std::string& to) override;
  void create(const std::string& name, std::string head, std::uint64_t bytes,
              Created done) override;
  void allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) override;
  void write(FileId file, std::uint64_t offset, std::vector<std::string_view> pieces, Sync sync,
             Done done) override;
  void sync(FileId file, Done done) override;
  void trim(FileId file, std::uint64_t bytes, Done done) override;
  void remove(const std::string& name, Done done) override;
  void reuse(const std::string& from, const std::string& to, std::string head, std::uint64_t bytes,
             Created done) override;

 private:
  struct Task;
  using FilePointer = std::shared_ptr<TestFile>;
  using Names = std::map<std::string, FilePointer>;

  struct OpenFile {
    std::string name;
    FilePointer file;
  };
  // A name that is created (`from` is empty), removed (`to` is empty) or moved.
  struct NameChange {
    std::string from;
    std::string to;
    FilePointer file;
  };
  struct Fault {
    std::uint64_t passes = 0;
    std::uint64_t times = 0;
    Outcome::Kind kind = Outcome::Kind::failed;
    std::string why;
  };

  static constexpr std::size_t index_of(Operation operation) {
    return static_cast<std::size_t>(operation);
  }

  void submit(Task task);
  Result<void> run_now(Task task);
  std::size_t next_to_run();
  Outcome begin(const Task& task);
  std::optional<Outcome> perform(Task& task);
  void fail_partly(Task& task, Outcome::Kind kind);
  void fail_reuse(Task& task);
  Outcome do_step(Task& task);
  Outcome step_of_create(Task& task);
  Outcome step_of_reuse(Task& task);
  Outcome step_of_write(Task& task);
  Outcome sync_file(const Task& task);
  void complete(const Task& task, const Outcome& outcome);
  bool tick();

  Task on_file(Operation operation, FileId id);
  static Task on_name(Operation operation, const std::string& name);
  FilePointer file_called(const std::string& name) const;
  // Counts the operation. Returns nothing if it succeeds.
  std::optional<Outcome> fault_of(Operation operation, const std::string& name);
  Result<void> look_at(Operation operation, const std::string& name);
  std::uint64_t growth_of(const Task& task) const;
  void change_name(NameChange change);
  static void apply(const NameChange& change, Names& names);
  void sync_names();
  void note(const Task& task);

  Names names_;
  Names durable_names_;
  std::vector<NameChange> name_changes_;  // between its two steps
  std::map<FileId, OpenFile> open_files_;
  FileId next_file_ = 1;
  std::uint64_t next_change_ = 1;
  std::vector<Task> queue_;
  std::optional<Random> shuffle_;
  std::array<std::optional<Fault>, kOperations> faults_;
  std::array<std::uint64_t, kOperations> counts_{};
  std::vector<std::string> log_;
  std::set<std::string> half_removed_;  // names that a removal without space has removed
  std::size_t reuses_without_space_ = 0;
  std::uint64_t capacity_ = UINT64_MAX;
  bool eaten_ = false;
  std::uint64_t left_ = 0;  // of the free space, if another process takes all space
  std::uint64_t steps_ = 0;
  std::uint64_t crash_at_ = UINT64_MAX;
  bool off_ = false;
};

}  // namespace tubed::journal
