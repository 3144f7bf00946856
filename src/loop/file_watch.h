// FileWatch: notices that files have changed, by inotify.
//
// A file is not watched itself: programs replace files by renames, and a watched file that was
// replaced would never change again. Watched are the directories in which a name on the file's path
// may come to mean another file (os/path_steps.h): the directory of the file, that of each symbolic
// link on the path, and of a path that does not exist the last directory that does. So the
// directories of a Kubernetes volume are watched, where a rename replaces the link `..data`.
//
// 1. An event of a watched directory counts if it has one of the looked-up names, or concerns the
//    directory itself.
// 2. The first that counts arms the timer. Each further event postpones it, so that it expires
//    kQuiet after the last event, but at the latest kMostDelay after the first: a burst of changes
//    is one change, and changes without end are at most one in kQuiet.
// 3. When it expires, the directories are found again: a directory that was removed or replaced is
//    no longer watched, and its successor is. Then `changed` is called, after the watches are
//    armed, so that a later change is not missed.
//
// A directory that is moved away together with those above it keeps its watch: that a directory
// further up on the path was replaced is noticed at the next event or set() only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <uv.h>

#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace tubed::loop {

class FileWatch {
 public:
  static constexpr Duration kQuiet = std::chrono::milliseconds(100);
  static constexpr Duration kMostDelay = std::chrono::seconds(1);

  struct Events {
    // A file may have changed. It must not call set(), which would lead to the next call.
    std::function<void()> changed;
    // A directory cannot be watched, with the system's reason: some changes are not noticed. Called
    // once after each set().
    std::function<void(const std::string& directory, std::string_view reason)> failed;
  };

  // `loop` outlives the watch.
  FileWatch(Loop& loop, Events events);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Watches these files, which need not exist, in place of those before; none: watches nothing.
  // Calls `changed` soon, as they may have changed before. O(names on their paths).
  void set(std::vector<std::string> files);

  // How many directories are watched. For tests.
  std::size_t directories() const { return directories_.size(); }

 private:
  struct Directory;
  using Names = std::map<std::string, std::set<std::string>>;  // by directory

  Names names_to_watch() const;
  bool find_directories();
  void arm_watches();
  bool watch(const std::string& path, std::set<std::string> names);
  void fail(const std::string& path, int error);
  void event(Directory& directory, const char* name);
  void expect_change();
  void settled();

  Loop& loop_;
  Events events_;
  std::vector<std::string> files_;
  std::map<std::string, std::unique_ptr<Directory>> directories_;  // by path
  bool failed_ = false;                                            // `failed` was called
  bool changing_ = false;                                          // the timer is armed
  Time changing_since_;
  Timer timer_;
};

}  // namespace tubed::loop
