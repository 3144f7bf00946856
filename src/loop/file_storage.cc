#include "loop/file_storage.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <span>
#include <type_traits>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loop/file_calls.h"
#include "os/process.h"

namespace tubed::loop {

using journal::Created;
using journal::Done;
using journal::FileId;
using journal::FileInfo;
using journal::Outcome;
using journal::Sync;

namespace {

constexpr const char* kLockName = "lock";
// What a file is called until it is whole; recovery knows it as a crash's leftover.
constexpr std::string_view kUnfinished = ".new";
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0750;

// --- Opening a directory

Error error_of(std::string message, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return {.message = std::move(message), .kind = denied ? Error::Kind::denied : Error::Kind::other};
}

Error complaint(const std::string& path, int error) {
  const auto reason = [error]() -> std::string {
    switch (error) {
      case ENOENT:
        return "no such directory";
      case ENOTDIR:
        return "not a directory";
      case EACCES:
        return "permission denied";
      default:
        return os::error_text(error);
    }
  };
  return error_of(fmt::format("journal directory {}: {}", path, reason()), error);
}

Result<os::Descriptor> open_directory(const std::string& path) {
  os::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return complaint(path, errno);
  return directory;
}

// There when this returns, and empty.
Result<os::Descriptor> open_new_directory(const std::string& path) {
  const bool made = ::mkdir(path.c_str(), kDirectoryMode) == 0;
  if (!made && errno != EEXIST) {
    return Error{
        fmt::format("journal directory {} cannot be made: {}", path, os::error_text(errno))};
  }
  auto directory = open_directory(path);
  if (!directory) return directory;
  std::error_code error;
  const bool empty = std::filesystem::is_empty(path, error);
  if (error) return complaint(path, error.value());
  if (!empty) return Error{fmt::format("journal directory {}: not empty", path)};
  if (made) {
    const os::Descriptor parent(
        ::openat(directory->number(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.number()) != 0) return complaint(path + "/..", errno);
  }
  return directory;
}

Result<os::Descriptor> take_lock(int directory, const std::string& path) {
  if (::faccessat(directory, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return complaint(path, errno);
  }
  os::Descriptor file(
      ::openat(directory, kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file) {
    const int error = errno;
    return error_of(fmt::format("journal directory {}: cannot open its file {}: {}", path,
                                kLockName, os::error_text(error)),
                    error);
  }
  TRY(os::lock_file(file, "journal directory " + path));
  return file;
}

// What the lock says of the directory's last owner.
constexpr std::string_view kCopyMark = "copy\n";

std::string lock_text(const os::Descriptor& lock) {
  std::array<char, 64> text;
  const ssize_t bytes = ::pread(lock.number(), text.data(), text.size(), 0);
  return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
}

// Not synced: what a loss of power destroys is not this boot's id either. On a full disk it fails,
// and the lock is empty.
void write_lock(const os::Descriptor& lock, std::string_view text) {
  if (::ftruncate(lock.number(), 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(lock.number(), text.data(), text.size(), 0);
}

// Memory that is about to be filled gets its pages at once, where the kernel can do that: each by
// itself would cost more than what is read into it.
void take_pages([[maybe_unused]] char* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::uintptr_t kPageBytes = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uintptr_t last = (begin + bytes) / kPageBytes * kPageBytes;
  if (last > first) ::madvise(memory + (first - begin), last - first, MADV_POPULATE_WRITE);
#endif
}

std::string unfinished(const std::string& name) {
  return name + std::string(kUnfinished);
}

bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<FileStorage>> FileStorage::open(Loop& loop, const std::string& directory,
                                                       Mode mode) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  auto opened = TRY(mode == Mode::create ? open_new_directory(path) : open_directory(path));
  os::Descriptor lock;
  if (mode != Mode::read_only) {
    std::signal(SIGXFSZ, SIG_IGN);
    lock = TRY(take_lock(opened.number(), path));
  }
  const std::string last_owner = mode == Mode::owner ? lock_text(lock) : std::string();
  if (mode == Mode::create) write_lock(lock, kCopyMark);
  std::unique_ptr<FileStorage> storage(
      new FileStorage(loop, std::move(path), std::move(opened), std::move(lock), mode));
  storage->last_owner_ = last_owner;
  return storage;
}

FileStorage::FileStorage(Loop& loop, std::string path, os::Descriptor directory,
                         os::Descriptor lock, Mode mode)
    : loop_(loop),
      path_(std::move(path)),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      mode_(mode) {}

bool FileStorage::is_copy() const {
  return last_owner_ == kCopyMark;
}

bool FileStorage::first_of_boot() const {
  const std::string boot = os::boot_id();
  return boot.empty() || last_owner_ != boot + "\n";
}

void FileStorage::note_boot() {
  TUBED_ASSERT(mode_ == Mode::owner);
  write_lock(lock_, os::boot_id() + "\n");
}

FileStorage::~FileStorage() {
  TUBED_ASSERT(!busy());
}

std::string FileStorage::path_of(std::string_view name) const {
  return fmt::format("{}{}{}", path_, path_ == "/" ? "" : "/", name);
}

FileId FileStorage::adopt(os::Descriptor descriptor, const std::string& name) {
  const FileId id = next_file_++;
  files_.emplace(id, File{.descriptor = std::move(descriptor), .path = path_of(name)});
  return id;
}

FileStorage::File& FileStorage::file_of(FileId id) {
  const auto found = files_.find(id);
  TUBED_ASSERT(found != files_.end());
  return found->second;
}

FileStorage::File& FileStorage::changeable_file_of(FileId id) {
  TUBED_ASSERT(mode_ != Mode::read_only);
  return file_of(id);
}

void FileStorage::assert_may_change(std::string_view name) const {
  TUBED_ASSERT(mode_ != Mode::read_only);
  TUBED_ASSERT(is_plain(name) && name != kLockName);
}

Outcome FileStorage::sync_directory() const {
  return sync_folder(directory_.number(), path_);
}

// --- Blocking

Result<std::vector<FileInfo>> FileStorage::list() {
  const auto failed = [this] { return Error{failure("listing of " + path_).reason}; };
  // A descriptor of its own, for the position is one of the descriptor.
  const int own = ::openat(directory_.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return failed();
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, Close> stream(::fdopendir(own));
  if (!stream) return failed();
  std::vector<FileInfo> files;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    struct stat status {};
    if (::fstatat(directory_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // it has gone meanwhile, as a reader without the lock may see
      return Error{failure("status of " + path_of(name)).reason};
    }
    if (!S_ISREG(status.st_mode) || name == kLockName) continue;
    files.push_back({.name = name, .bytes = static_cast<std::uint64_t>(status.st_size)});
  }
  if (errno != 0) return failed();
  return files;
}

Result<FileId> FileStorage::open(const std::string& name) {
  // To open the lock's file would end the lock when it is closed.
  TUBED_ASSERT(is_plain(name) && name != kLockName);
  const auto open_for = [&](int access) {
    return os::Descriptor(
        ::openat(directory_.number(), name.c_str(), access | O_CLOEXEC | O_NOFOLLOW));
  };
  os::Descriptor file = open_for(mode_ == Mode::read_only ? O_RDONLY : O_RDWR);
  // Compat: beanstalkd's binlogs are for reading only, and nothing else is asked of them.
  if (!file && errno == EACCES) file = open_for(O_RDONLY);
  const int error = errno;
  if (!file) return error_of(failure("opening of " + path_of(name)).reason, error);
  const FileId id = adopt(std::move(file), name);
  file_of(id).plain_asked = file_of(id).plain_done = 1;  // who knows what was written before
  return id;
}

void FileStorage::close(FileId file) {
  TUBED_ASSERT(file_of(file).under_way == 0);
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
  take_pages(contents.data(), contents.capacity());
  contents.resize(static_cast<std::size_t>(status.st_size));
  std::size_t bytes = 0;
  while (bytes < contents.size()) {
    const ssize_t result = uninterrupted([&] {
      return ::pread(file.descriptor.number(), contents.data() + bytes, contents.size() - bytes,
                     static_cast<off_t>(bytes));
    });
    if (result < 0) return Error{failure(fmt::format("read of {} at {}", file.path, bytes)).reason};
    if (result == 0) break;  // it was cut meanwhile
    bytes += static_cast<std::size_t>(result);
  }
  contents.resize(bytes);
  return contents;
}

Result<void> FileStorage::truncate(FileId id, std::uint64_t bytes) {
  const File& file = changeable_file_of(id);
  return as_result(cut(file.descriptor.number(), file.path, bytes));
}

Result<void> FileStorage::sync_now(FileId id) {
  const File& file = changeable_file_of(id);
  Outcome outcome = sync_file(file.descriptor.number(), file.path);
  if (outcome.ok()) outcome = sync_folder(directory_.number(), path_);
  return as_result(std::move(outcome));
}

Result<void> FileStorage::store(const std::string& name, std::string_view contents) {
  assert_may_change(name);
  os::Descriptor made;
  return as_result(make_file(name, contents, contents.size(), false, made));
}

Result<void> FileStorage::remove_now(const std::string& name) {
  assert_may_change(name);
  return as_result(unlink(name));
}

Result<void> FileStorage::move(const std::string& from, const std::string& to) {
  assert_may_change(from);
  const auto slash = to.find('/');
  const std::string folder = slash == std::string::npos ? "." : to.substr(0, slash);
  const std::string name = slash == std::string::npos ? to : to.substr(slash + 1);
  assert_may_change(name);
  if (slash != std::string::npos) {
    assert_may_change(folder);
    if (::mkdirat(directory_.number(), folder.c_str(), kDirectoryMode) == 0) {
      // Durable before a file goes there.
      if (Outcome outcome = sync_directory(); !outcome.ok()) return as_result(std::move(outcome));
    } else if (errno != EEXIST) {
      return as_result(failure("creation of the directory " + path_of(folder)));
    }
  }
  const os::Descriptor target(
      ::openat(directory_.number(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!target) return as_result(failure("opening of the directory " + path_of(folder)));
  if (rename_to_free(directory_.number(), from.c_str(), target.number(), name.c_str()) != 0) {
    return as_result(failure(fmt::format("move of {} to {}", path_of(from), path_of(to))));
  }
  Outcome outcome = sync_folder(target.number(), path_of(folder));
  return as_result(outcome.ok() ? sync_directory() : std::move(outcome));
}

// --- Names, on any thread

Outcome FileStorage::make_file(const std::string& name, std::string_view head, std::uint64_t bytes,
                               bool fill, os::Descriptor& made) const {
  return give_name(name, fill_file(unfinished(name), head, bytes, fill, made));
}

// A file that is whole gets its name; what is left of one that is not goes.
Outcome FileStorage::give_name(const std::string& name, Outcome filled) const {
  const int directory = directory_.number();
  const std::string before = unfinished(name);
  if (filled.ok() && rename_to_free(directory, before.c_str(), directory, name.c_str()) != 0) {
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
  // What a crash has left under this name goes, so that the file begins empty and with its mode.
  if (Outcome outcome = clear(name); !outcome.ok()) return outcome;
  made = os::Descriptor(::openat(directory_.number(), name.c_str(),
                                 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!made) return failure("creation of " + path);
  if (Outcome outcome = write_all(made.number(), path, 0, {&head, 1}); !outcome.ok()) {
    return outcome;
  }
  if (Outcome outcome = reserve(made.number(), path, head.size(), bytes, fill); !outcome.ok()) {
    return outcome;
  }
  return sync_new_file(made.number(), path);
}

// The steps are those of storage.h: the old name goes, durably; then the contents change; then the
// file is whole and gets its new name. A crash between the first and the last leaves an unfinished
// file, which the next start removes.
void FileStorage::reuse_file(const std::string& from, const std::string& to, std::string_view head,
                             std::uint64_t bytes, Reused& reused) const {
  const int directory = directory_.number();
  const std::string name = unfinished(to);
  const std::string path = path_of(name);
  Outcome& outcome = reused.outcome;
  reused.descriptor =
      os::Descriptor(::openat(directory, from.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!reused.descriptor) {
    outcome = failure("opening of " + path_of(from));
    return;
  }
  outcome = clear(name);
  if (!outcome.ok()) return;
  if (rename_to_free(directory, from.c_str(), directory, name.c_str()) != 0) {
    outcome = failure(fmt::format("renaming of {} to {}", path_of(from), name));
    return;
  }
  outcome = sync_directory();
  if (outcome.ok()) outcome = overwrite(reused.descriptor.number(), path, head, bytes);
  outcome = give_name(to, std::move(outcome));
  reused.half_removed = !outcome.ok();
}

// Nothing has the name when it has succeeded, though perhaps not durably.
Outcome FileStorage::clear(const std::string& name) const {
  if (::unlinkat(directory_.number(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return failure("removal of " + path_of(name));
}

Outcome FileStorage::unlink(const std::string& name) const {
  if (::unlinkat(directory_.number(), name.c_str(), 0) == 0) return sync_directory();
  return failure("removal of " + path_of(name));
}

// --- In the background

template <class Work, class Finish>
void FileStorage::in_background(Work work, Finish finish) {
  struct Request {
    FileStorage& storage;
    Work work;
    Finish finish;
    std::invoke_result_t<Work&> result{};
    uv_work_t uv{};
  };
  auto request = std::make_unique<Request>(Request{*this, std::move(work), std::move(finish)});
  request->uv.data = request.get();
  ++under_way_;
  const int queued = uv_queue_work(
      loop_.uv(), &request->uv,
      [](uv_work_t* uv) {
        auto& own = *static_cast<Request*>(uv->data);
        own.result = own.work();
      },
      [](uv_work_t* uv, int) {
        const std::unique_ptr<Request> own(static_cast<Request*>(uv->data));
        --own->storage.under_way_;
        own->finish(own->result);
      });
  TUBED_ASSERT(queued == 0);
  static_cast<void>(request.release());  // the second callback frees it
}

template <class Work>
void FileStorage::in_background_on(FileId id, Work work, Done done) {
  File& file = changeable_file_of(id);
  ++file.under_way;
  in_background([work = std::move(work), descriptor = file.descriptor.number(),
                 &path = file.path] { return work(descriptor, path); },
                [&file, done = std::move(done)](const Outcome& outcome) {
                  --file.under_way;
                  done(outcome);
                });
}

void FileStorage::create(const std::string& name, std::string head, std::uint64_t bytes,
                         Created done) {
  assert_may_change(name);
  TUBED_ASSERT(head.size() <= bytes);
  struct Made {
    Outcome outcome;
    os::Descriptor descriptor;
  };
  in_background(
      [this, name, head = std::move(head), bytes, fill = fills_ahead_] {
        Made made;
        made.outcome = make_file(name, head, bytes, fill, made.descriptor);
        return made;
      },
      [this, name, done = std::move(done)](Made& made) {
        const bool ok = made.outcome.ok();
        done(made.outcome, ok ? adopt(std::move(made.descriptor), name) : FileId{});
      });
}

void FileStorage::allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) {
  TUBED_ASSERT(from <= to);
  const auto work = [from, to, fill = fills_ahead_](int descriptor, const std::string& path) {
    Outcome outcome = reserve(descriptor, path, from, to, fill);
    // Also gives back what was allocated behind the end and is not seen in the file's length.
    if (!outcome.ok() && ::ftruncate(descriptor, static_cast<off_t>(from)) != 0) {
      outcome.kind = Outcome::Kind::failed;
    }
    return outcome;
  };
  in_background_on(file, work, std::move(done));
}

void FileStorage::write(FileId id, std::uint64_t offset, std::vector<std::string_view> pieces,
                        Sync sync, Done done) {
  File& file = changeable_file_of(id);
  const bool syncs = sync == Sync::yes;
  const bool alone = syncs && file.plain_asked == file.plain_covered;
  if (!syncs) {
    ++file.plain_asked;
    done = [&file, done = std::move(done)](const Outcome& outcome) {
      ++file.plain_done;
      done(outcome);
    };
  }
  if (syncs && !alone) done = when_synced(file, std::move(done));
  auto work = [offset, pieces = std::move(pieces), syncs, alone](int descriptor,
                                                                 const std::string& path) {
    if (alone) return write_synced(descriptor, path, offset, pieces);
    Outcome outcome = write_all(descriptor, path, offset, pieces);
    return outcome.ok() && syncs ? sync_file(descriptor, path) : outcome;
  };
  in_background_on(id, std::move(work), std::move(done));
}

void FileStorage::sync(FileId file, Done done) {
  in_background_on(file, sync_file, when_synced(changeable_file_of(file), std::move(done)));
}

// All writes that are done by now are covered when it has succeeded; not one that is still going
// on.
Done FileStorage::when_synced(File& file, Done done) {
  return [&file, covered = file.plain_done, done = std::move(done)](const Outcome& outcome) {
    if (outcome.ok()) file.plain_covered = std::max(file.plain_covered, covered);
    done(outcome);
  };
}

void FileStorage::trim(FileId file, std::uint64_t bytes, Done done) {
  const auto work = [bytes](int descriptor, const std::string& path) {
    return cut(descriptor, path, bytes);
  };
  in_background_on(file, work, std::move(done));
}

void FileStorage::remove(const std::string& name, Done done) {
  assert_may_change(name);
  struct Removal {
    Outcome outcome;
    bool half_done = false;
  };
  in_background(
      [this, name, half_done = half_removed_.contains(name)] {
        if (!half_done && ::unlinkat(directory_.number(), name.c_str(), 0) != 0) {
          return Removal{.outcome = failure("removal of " + path_of(name))};
        }
        Outcome outcome = sync_directory();
        const bool ok = outcome.ok();
        return Removal{.outcome = std::move(outcome), .half_done = !ok};
      },
      [this, name, done = std::move(done)](const Removal& removal) {
        note_half_removed(name, removal.half_done);
        done(removal.outcome);
      });
}

void FileStorage::reuse(const std::string& from, const std::string& to, std::string head,
                        std::uint64_t bytes, Created done) {
  assert_may_change(from);
  assert_may_change(to);
  TUBED_ASSERT(head.size() <= bytes);
  in_background(
      [this, from, to, head = std::move(head), bytes] {
        Reused reused;
        reuse_file(from, to, head, bytes, reused);
        return reused;
      },
      [this, from, to, done = std::move(done)](Reused& reused) {
        note_half_removed(from, reused.half_removed);
        const bool ok = reused.outcome.ok();
        done(reused.outcome, ok ? adopt(std::move(reused.descriptor), to) : FileId{});
      });
}

void FileStorage::note_half_removed(const std::string& name, bool half_removed) {
  if (half_removed) {
    half_removed_.insert(name);
  } else {
    half_removed_.erase(name);
  }
}

}  // namespace tubed::loop
