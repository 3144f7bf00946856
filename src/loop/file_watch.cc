// The steps are numbered in file_watch.h.
#include "loop/file_watch.h"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "os/clock.h"
#include "os/descriptor.h"
#include "os/path_steps.h"

namespace tubed::loop {

namespace {

// The directories may change while they are searched. After this many searches the next event
// starts another.
constexpr int kMostSearches = 5;

std::string_view last_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

struct FileWatch::Directory {
  // Distinguishes a directory from another that has its path later.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const Identity&, const Identity&) = default;

    static Identity of(const std::string& path) {
      struct stat status {};
      if (::stat(path.c_str(), &status) != 0) return {};
      return {status.st_dev, status.st_ino};
    }
  };

  Directory(FileWatch& of, std::string at, std::set<std::string> looked_up)
      : watch(of),
        path(std::move(at)),
        names(std::move(looked_up)),
        identity(Identity::of(path)),
        handle(this) {}

  FileWatch& watch;
  const std::string path;
  std::set<std::string> names;
  const Identity identity;
  // The directory itself was changed: if it was removed, the kernel has ended the watch. The number
  // of a removed directory may be in use again.
  bool stale = false;
  Handle<uv_fs_event_t> handle;
};

FileWatch::FileWatch(Loop& loop, Events events)
    : loop_(loop), events_(std::move(events)), timer_(loop, [this] { settled(); }) {}

FileWatch::~FileWatch() = default;

void FileWatch::set(std::vector<std::string> files) {
  files_ = std::move(files);
  failed_ = false;
  changing_ = false;
  timer_.disarm();
  if (files_.empty()) {
    directories_.clear();
    return;
  }
  arm_watches();
  expect_change();
}

FileWatch::Names FileWatch::names_to_watch() const {
  Names names;
  for (const std::string& file : files_) {
    for (os::PathStep& step : os::path_steps(file))
      names[std::move(step.directory)].insert(std::move(step.name));
  }
  return names;
}

// Step 3. Repeats until the directories that are watched are those of a search that began after
// they were watched.
void FileWatch::arm_watches() {
  for (int i = 0; i < kMostSearches; ++i) {
    if (!find_directories()) return;
  }
}

// True if a directory was not watched before.
bool FileWatch::find_directories() {
  Names names = names_to_watch();
  std::erase_if(directories_, [&](const auto& one) {
    const Directory& directory = *one.second;
    return directory.stale || !names.contains(one.first) ||
           directory.identity != Directory::Identity::of(one.first);
  });
  bool is_new = false;
  for (auto& [path, looked_up] : names) {
    const auto known = directories_.find(path);
    if (known == directories_.end()) {
      is_new = watch(path, std::move(looked_up)) || is_new;
    } else {
      known->second->names = std::move(looked_up);
    }
  }
  return is_new;
}

// False if it cannot be watched.
bool FileWatch::watch(const std::string& path, std::set<std::string> names) {
  auto directory = std::make_unique<Directory>(*this, path, std::move(names));
  uv_fs_event_t* const handle = directory->handle.get();
  if (const int error = uv_fs_event_init(loop_.uv(), handle); error != 0) {
    directory->handle.forget();
    fail(path, error);
    return false;
  }
  const int error = uv_fs_event_start(
      handle,
      [](uv_fs_event_t* event, const char* name, int, int) {
        auto& of = owner_of<Directory>(event);
        of.watch.event(of, name);
      },
      path.c_str(), 0);
  // Another search follows, which no longer finds it.
  if (error == UV_ENOENT) return true;
  if (error != 0) {
    fail(path, error);
    return false;
  }
  directories_.emplace(path, std::move(directory));
  return true;
}

void FileWatch::fail(const std::string& path, int error) {
  if (std::exchange(failed_, true)) return;
  events_.failed(path, os::error_text(-error));
}

// Step 1. libuv names the directory itself by the last name of its path.
void FileWatch::event(Directory& directory, const char* name) {
  const std::string_view changed = name == nullptr ? std::string_view() : name;
  const bool is_itself = changed.empty() || changed == last_name_of(directory.path);
  if (is_itself) directory.stale = true;
  if (is_itself || directory.names.contains(std::string(changed))) expect_change();
}

// Step 2.
void FileWatch::expect_change() {
  const Time now = os::monotonic_now();
  if (!std::exchange(changing_, true)) changing_since_ = now;
  timer_.arm(std::min(now + kQuiet, changing_since_ + kMostDelay) - now);
}

void FileWatch::settled() {
  changing_ = false;
  arm_watches();
  events_.changed();
}

}  // namespace tubed::loop
