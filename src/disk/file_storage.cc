// How FileStorage works
//
// Blocking operations are for start-up and tools. A background operation is a request: a thread of
// libuv's pool calls its `work`, then the loop's thread calls its `finish` with the result. The
// pool thread uses only the arguments of the operation, the descriptor and path of its file, and
// the immutable members directory_, path_ and new_owner_; never the state of the storage. It also
// reads the bytes of a write, which their owner keeps unchanged until the completion. When a
// completion is called, its operation is no longer pending: it may close the file, start operations
// or destroy the storage.
//
// Which sync covers which write
//
// A write without a sync leaves its bytes in the cache. A later synced write to the same file must
// make them durable too (journal/storage.h). File has three counters for this:
//
// 1. When a write without a sync is requested, unsynced_started is incremented.
// 2. When it completes, unsynced_done is incremented.
// 3. When a sync is requested, it records unsynced_done: it covers exactly the completed writes,
//    not the running ones. When it succeeds, unsynced_covered is raised to that number.
// 4. A synced write compares unsynced_started with unsynced_covered. If they are equal, it syncs
//    only its own bytes (write_synced). Otherwise it writes and syncs the whole file, as in step 3.
//
// An earlier process may have written to a file, so opening counts as one write that is not
// covered.
//
// How names become durable
//
// An incomplete file has the suffix `.new`, so after a crash a file is either complete or absent.
// Recovery removes files with the suffix.
//
// create, store:
//   1. Remove NAME.new if a crash has left it, and create it.
//   2. Write its head and allocate the rest.
//   3. Sync the file.
//   4. Rename it to NAME, which must not exist.
//   5. Sync the directory.
//   After a failure the file is removed.
// remove:
//   1. Remove the name.
//   2. Sync the directory. After a failure the name is in unsynced_removals_, and another remove()
//      starts with this step.
// reuse (FROM becomes TO):
//   1. Open FROM, and remove TO.new if a crash has left it.
//   2. Rename FROM to TO.new.
//   3. Sync the directory. From here on FROM is durably removed, and its contents may change.
//   4. Overwrite the contents with the head and zeros, truncate the file, and sync it.
//   5. Rename it to TO, which must not exist.
//   6. Sync the directory.
//   After a failure in step 1 or 2 nothing has changed. After a later failure the file is removed,
//   and FROM is in unsynced_removals_.
#include "disk/file_storage.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <type_traits>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/directory_lock.h"
#include "disk/file_calls.h"
#include "os/process.h"

namespace tubed::disk {

using journal::Created;
using journal::Done;
using journal::FileId;
using journal::FileInfo;
using journal::Outcome;
using journal::Sync;

namespace {

// The suffix of incomplete files, which recovery removes.
constexpr std::string_view kUnfinishedSuffix = ".new";

// The note in the file `lock`: this, or the id of the boot in which record_boot() was called.
constexpr std::string_view kCopyNote = "copy\n";

// Populates the pages of memory that is about to be filled, if the kernel supports it. One page
// fault per page would take longer than the read itself.
void prefault([[maybe_unused]] char* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::uintptr_t kPageBytes = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uintptr_t last = (begin + bytes) / kPageBytes * kPageBytes;
  if (last > first) ::madvise(memory + (first - begin), last - first, MADV_POPULATE_WRITE);
#endif
}

std::string unfinished_name(const std::string& name) {
  return name + std::string(kUnfinishedSuffix);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<FileStorage>> FileStorage::open(loop::Loop& loop,
                                                       const std::string& directory, Mode mode) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const bool creates = mode == Mode::create || mode == Mode::create_part;
  auto opened =
      TRY(creates ? open_new_directory(path, mode == Mode::create_part) : open_directory(path));
  const NewOwner owner = mode == Mode::create ? NewOwner() : owner_of_new_files(opened.number());
  os::Descriptor lock;
  if (mode != Mode::read_only) {
    std::signal(SIGXFSZ, SIG_IGN);
    lock = TRY(lock_directory(opened.number(), path, owner));
  }
  const std::string last_owner = mode == Mode::owner ? read_note(lock) : std::string();
  if (creates) write_note(lock, kCopyNote);
  std::unique_ptr<FileStorage> storage(
      new FileStorage(loop, std::move(path), std::move(opened), std::move(lock), mode));
  storage->last_owner_ = last_owner;
  storage->new_owner_ = owner;
  return storage;
}

FileStorage::FileStorage(loop::Loop& loop, std::string path, os::Descriptor directory,
                         os::Descriptor lock, Mode mode)
    : loop_(loop),
      path_(std::move(path)),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      mode_(mode) {}

bool FileStorage::is_copy() const {
  return last_owner_ == kCopyNote;
}

bool FileStorage::first_of_boot() const {
  const std::string boot = os::boot_id();
  return boot.empty() || last_owner_ != boot + "\n";
}

void FileStorage::record_boot() {
  TUBED_ASSERT(mode_ == Mode::owner);
  write_note(lock_, os::boot_id() + "\n");
}

FileStorage::~FileStorage() {
  TUBED_ASSERT(!busy());
}

std::string FileStorage::path_of(std::string_view name) const {
  return fmt::format("{}{}{}", path_, path_ == "/" ? "" : "/", name);
}

FileId FileStorage::add_file(os::Descriptor descriptor, const std::string& name) {
  const FileId id = next_file_++;
  files_.emplace(id, File{.descriptor = std::move(descriptor), .path = path_of(name)});
  return id;
}

FileStorage::File& FileStorage::file_of(FileId id) {
  const auto found = files_.find(id);
  TUBED_ASSERT(found != files_.end());
  return found->second;
}

FileStorage::File& FileStorage::writable_file_of(FileId id) {
  TUBED_ASSERT(mode_ != Mode::read_only);
  return file_of(id);
}

void FileStorage::assert_writable(std::string_view name) const {
  TUBED_ASSERT(mode_ != Mode::read_only);
  TUBED_ASSERT(is_plain_name(name) && name != kLockName);
}

Outcome FileStorage::sync_directory() const {
  return fsync_directory(directory_.number(), path_);
}

// --- Blocking

Result<std::vector<FileInfo>> FileStorage::list() {
  const auto failed = [this] { return Error{failure("listing of " + path_).reason}; };
  // A descriptor of its own, because the position of a listing belongs to the open directory.
  const int own = ::openat(directory_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return failed();
  struct CloseStream {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(own));
  if (!stream) return failed();
  std::vector<FileInfo> files;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    struct stat status {};
    if (::fstatat(directory_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // the owner has removed it meanwhile
      return Error{failure("status of " + path_of(name)).reason};
    }
    if (!S_ISREG(status.st_mode) || name == kLockName) continue;
    files.push_back({.name = name, .bytes = static_cast<std::uint64_t>(status.st_size)});
  }
  if (errno != 0) return failed();
  return files;
}

Result<FileId> FileStorage::open(const std::string& name) {
  // Closing another descriptor of the file `lock` would release the lock.
  TUBED_ASSERT(is_plain_name(name) && name != kLockName);
  const auto open_for = [&](int access) {
    return os::Descriptor(
        ::openat(directory_.number(), name.c_str(), access | O_CLOEXEC | O_NOFOLLOW));
  };
  os::Descriptor file = open_for(mode_ == Mode::read_only ? O_RDONLY : O_RDWR);
  // Compat: beanstalkd's binlogs may be read-only files; they are only read.
  if (!file && errno == EACCES) file = open_for(O_RDONLY);
  const int error = errno;
  if (!file) return error_of(failure("opening of " + path_of(name)).reason, error);
  const FileId id = add_file(std::move(file), name);
  file_of(id).unsynced_started = file_of(id).unsynced_done = 1;  // earlier writes are unknown
  return id;
}

void FileStorage::close(FileId file) {
  TUBED_ASSERT(file_of(file).operations == 0);
  files_.erase(file);
}

Result<std::string> FileStorage::read(FileId id) {
  const File& file = file_of(id);
  struct stat status {};
  if (::fstat(file.descriptor.number(), &status) != 0) {
    return Error{failure("status of " + file.path).reason};
  }
  std::string contents;
  contents.reserve(static_cast<std::size_t>(status.st_size));
  prefault(contents.data(), contents.capacity());
  contents.resize(static_cast<std::size_t>(status.st_size));
  std::size_t bytes = 0;
  while (bytes < contents.size()) {
    const ssize_t result = retry_eintr([&] {
      return ::pread(file.descriptor.number(), contents.data() + bytes, contents.size() - bytes,
                     static_cast<off_t>(bytes));
    });
    if (result < 0) return Error{failure(fmt::format("read of {} at {}", file.path, bytes)).reason};
    if (result == 0) break;  // truncated meanwhile
    bytes += static_cast<std::size_t>(result);
  }
  contents.resize(bytes);
  return contents;
}

Result<void> FileStorage::truncate(FileId id, std::uint64_t bytes) {
  const File& file = writable_file_of(id);
  return as_result(truncate_file(file.descriptor.number(), file.path, bytes));
}

Result<void> FileStorage::sync_now(FileId id) {
  const File& file = writable_file_of(id);
  Outcome outcome = sync_file(file.descriptor.number(), file.path);
  if (outcome.ok()) outcome = fsync_directory(directory_.number(), path_);
  return as_result(std::move(outcome));
}

Result<void> FileStorage::store(const std::string& name, std::string_view contents) {
  assert_writable(name);
  os::Descriptor made;
  return as_result(make_file(name, contents, contents.size(), false, made));
}

Result<void> FileStorage::remove_now(const std::string& name) {
  assert_writable(name);
  return as_result(unlink(name));
}

Result<void> FileStorage::move(const std::string& from, const std::string& to) {
  assert_writable(from);
  const auto slash = to.find('/');
  const std::string folder = slash == std::string::npos ? "." : to.substr(0, slash);
  const std::string name = slash == std::string::npos ? to : to.substr(slash + 1);
  assert_writable(name);
  if (slash != std::string::npos) {
    assert_writable(folder);
    if (::mkdirat(directory_.number(), folder.c_str(), kDirectoryMode) == 0) {
      const os::Descriptor made(::openat(directory_.number(), folder.c_str(),
                                         O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      if (made) give(made.number(), new_owner_);
      // The folder must be durable before a file is moved into it.
      if (Outcome outcome = sync_directory(); !outcome.ok()) return as_result(std::move(outcome));
    } else if (errno != EEXIST) {
      return as_result(failure("creation of the directory " + path_of(folder)));
    }
  }
  const os::Descriptor target(
      ::openat(directory_.number(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!target) return as_result(failure("opening of the directory " + path_of(folder)));
  if (rename_noreplace(directory_.number(), from.c_str(), target.number(), name.c_str()) != 0) {
    return as_result(failure(fmt::format("move of {} to {}", path_of(from), path_of(to))));
  }
  Outcome outcome = fsync_directory(target.number(), path_of(folder));
  return as_result(outcome.ok() ? sync_directory() : std::move(outcome));
}

// --- Names, on any thread

Outcome FileStorage::make_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                               bool fill, os::Descriptor& made) const {
  return publish(name, fill_file(unfinished_name(name), head, bytes, fill, made));
}

// Runs steps 4 and 5 of create. `filled` is the outcome of steps 1 to 3. Removes the file if any
// step has failed.
Outcome FileStorage::publish(const std::string& name, Outcome filled) const {
  const int directory = directory_.number();
  const std::string before = unfinished_name(name);
  if (filled.ok() && rename_noreplace(directory, before.c_str(), directory, name.c_str()) != 0) {
    filled = failure(fmt::format("renaming of {} to {}", path_of(before), name));
  }
  if (!filled.ok()) {
    ::unlinkat(directory, before.c_str(), 0);
    return filled;
  }
  Outcome outcome = sync_directory();
  if (!outcome.ok()) ::unlinkat(directory, name.c_str(), 0);
  return outcome;
}

Outcome FileStorage::fill_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                               bool fill, os::Descriptor& made) const {
  const std::string path = path_of(name);
  // A crash may have left the name. A new file is empty and has the right mode.
  if (Outcome outcome = remove_unfinished(name); !outcome.ok()) return outcome;
  made = os::Descriptor(::openat(directory_.number(), name.c_str(),
                                 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!made) return failure("creation of " + path);
  give(made.number(), new_owner_);
  if (Outcome outcome = write_all(made.number(), path, 0, {&head, 1}); !outcome.ok()) {
    return outcome;
  }
  if (Outcome outcome = allocate_range(made.number(), path, head.size(), bytes, fill);
      !outcome.ok()) {
    return outcome;
  }
  return sync_new_file(made.number(), path);
}

// The numbers are the steps of reuse.
void FileStorage::reuse_file(const std::string& from, const std::string& to, std::string_view head,
                             std::uint64_t bytes, ReuseResult& reused) const {
  const int directory = directory_.number();
  const std::string name = unfinished_name(to);
  const std::string path = path_of(name);
  Outcome& outcome = reused.outcome;
  reused.descriptor =  // 1
      os::Descriptor(::openat(directory, from.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!reused.descriptor) {
    outcome = failure("opening of " + path_of(from));
    return;
  }
  outcome = remove_unfinished(name);
  if (!outcome.ok()) return;
  if (rename_noreplace(directory, from.c_str(), directory, name.c_str()) != 0) {  // 2
    outcome = failure(fmt::format("renaming of {} to {}", path_of(from), name));
    return;
  }
  outcome = sync_directory();                                                            // 3
  if (outcome.ok()) outcome = overwrite(reused.descriptor.number(), path, head, bytes);  // 4
  outcome = publish(to, std::move(outcome));                                             // 5, 6
  reused.removed_unsynced = !outcome.ok();
}

// Removes the name if it exists, but not durably.
Outcome FileStorage::remove_unfinished(const std::string& name) const {
  if (::unlinkat(directory_.number(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return failure("removal of " + path_of(name));
}

Outcome FileStorage::unlink(const std::string& name) const {
  if (::unlinkat(directory_.number(), name.c_str(), 0) == 0) return sync_directory();
  return failure("removal of " + path_of(name));
}

// --- In the background

template <class Work, class Finish>
void FileStorage::run_in_pool(Work work, Finish finish) {
  struct Request {
    FileStorage& storage;
    Work work;
    Finish finish;
    std::invoke_result_t<Work&> result{};
    uv_work_t uv{};
  };
  auto request = std::make_unique<Request>(Request{*this, std::move(work), std::move(finish)});
  request->uv.data = request.get();
  ++operations_;
  const int queued = uv_queue_work(
      loop_.uv(), &request->uv,
      [](uv_work_t* uv) {
        auto& own = *static_cast<Request*>(uv->data);
        own.result = own.work();
      },
      [](uv_work_t* uv, int) {
        const std::unique_ptr<Request> own(static_cast<Request*>(uv->data));
        --own->storage.operations_;
        own->finish(own->result);
      });
  TUBED_ASSERT(queued == 0);
  static_cast<void>(request.release());  // now owned by the second callback
}

template <class Work>
void FileStorage::run_on_file(FileId id, Work work, Done done) {
  File& file = writable_file_of(id);
  ++file.operations;
  run_in_pool([work = std::move(work), descriptor = file.descriptor.number(),
               &path = file.path] { return work(descriptor, path); },
              [&file, done = std::move(done)](const Outcome& outcome) {
                --file.operations;
                done(outcome);
              });
}

void FileStorage::create(const std::string& name, std::string head, std::uint64_t bytes,
                         Created done) {
  assert_writable(name);
  TUBED_ASSERT(head.size() <= bytes);
  struct Made {
    Outcome outcome;
    os::Descriptor descriptor;
  };
  run_in_pool(
      [this, name, head = std::move(head), bytes, fill = zero_fill_] {
        Made made;
        made.outcome = make_file(name, head, bytes, fill, made.descriptor);
        return made;
      },
      [this, name, done = std::move(done)](Made& made) {
        const bool ok = made.outcome.ok();
        done(made.outcome, ok ? add_file(std::move(made.descriptor), name) : FileId{});
      });
}

void FileStorage::allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) {
  TUBED_ASSERT(from <= to);
  const auto work = [from, to, fill = zero_fill_](int descriptor, const std::string& path) {
    Outcome outcome = allocate_range(descriptor, path, from, to, fill);
    // Also frees blocks that fallocate() has reserved beyond the end of the file.
    if (!outcome.ok() && ::ftruncate(descriptor, static_cast<off_t>(from)) != 0) {
      outcome.kind = Outcome::Kind::failed;
    }
    return outcome;
  };
  run_on_file(file, work, std::move(done));
}

void FileStorage::write(FileId id, std::uint64_t offset, std::vector<std::string_view> pieces,
                        Sync sync, Done done) {
  File& file = writable_file_of(id);
  const bool syncs = sync == Sync::yes;
  const bool alone = syncs && file.unsynced_started == file.unsynced_covered;
  if (!syncs) {
    ++file.unsynced_started;
    done = [&file, done = std::move(done)](const Outcome& outcome) {
      ++file.unsynced_done;
      done(outcome);
    };
  }
  if (syncs && !alone) done = covering_sync(file, std::move(done));
  auto work = [offset, pieces = std::move(pieces), syncs, alone](int descriptor,
                                                                 const std::string& path) {
    if (alone) return write_synced(descriptor, path, offset, pieces);
    Outcome outcome = write_all(descriptor, path, offset, pieces);
    return outcome.ok() && syncs ? sync_file(descriptor, path) : outcome;
  };
  run_on_file(id, std::move(work), std::move(done));
}

void FileStorage::sync(FileId file, Done done) {
  run_on_file(file, sync_file, covering_sync(writable_file_of(file), std::move(done)));
}

// Wraps the completion of a sync that starts now: on success it covers the writes that are complete
// now.
Done FileStorage::covering_sync(File& file, Done done) {
  return [&file, covered = file.unsynced_done, done = std::move(done)](const Outcome& outcome) {
    if (outcome.ok()) file.unsynced_covered = std::max(file.unsynced_covered, covered);
    done(outcome);
  };
}

void FileStorage::trim(FileId file, std::uint64_t bytes, Done done) {
  const auto work = [bytes](int descriptor, const std::string& path) {
    return truncate_file(descriptor, path, bytes);
  };
  run_on_file(file, work, std::move(done));
}

void FileStorage::remove(const std::string& name, Done done) {
  assert_writable(name);
  struct Removal {
    Outcome outcome;
    bool removed_unsynced = false;
  };
  run_in_pool(
      [this, name, removed_unsynced = unsynced_removals_.contains(name)] {
        if (!removed_unsynced && ::unlinkat(directory_.number(), name.c_str(), 0) != 0) {
          return Removal{.outcome = failure("removal of " + path_of(name))};
        }
        Outcome outcome = sync_directory();
        const bool ok = outcome.ok();
        return Removal{.outcome = std::move(outcome), .removed_unsynced = !ok};
      },
      [this, name, done = std::move(done)](const Removal& removal) {
        record_removal(name, removal.removed_unsynced);
        done(removal.outcome);
      });
}

void FileStorage::reuse(const std::string& from, const std::string& to, std::string head,
                        std::uint64_t bytes, Created done) {
  assert_writable(from);
  assert_writable(to);
  TUBED_ASSERT(head.size() <= bytes);
  run_in_pool(
      [this, from, to, head = std::move(head), bytes] {
        ReuseResult reused;
        reuse_file(from, to, head, bytes, reused);
        return reused;
      },
      [this, from, to, done = std::move(done)](ReuseResult& reused) {
        record_removal(from, reused.removed_unsynced);
        const bool ok = reused.outcome.ok();
        done(reused.outcome, ok ? add_file(std::move(reused.descriptor), to) : FileId{});
      });
}

void FileStorage::record_removal(const std::string& name, bool removed_unsynced) {
  if (removed_unsynced) {
    unsynced_removals_.insert(name);
  } else {
    unsynced_removals_.erase(name);
  }
}

}  // namespace tubed::disk
