// DirectoryTree: durable changes to the names in one directory and its folders, one step at a time.
//
// Names are relative to the directory: "journal.0000000001", "fetch/cluster". All functions block.
// The effect of a function that returns without an error survives a power loss. After a crash in
// the middle, each step has either happened or not. An error is one line that names the path; a
// full disk has the kind `no_space`.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tubed::disk {

class DirectoryTree {
 public:
  // Called before each step; an error ends the operation, as a crash would. For tests.
  using Hook = std::function<Result<void>()>;

  explicit DirectoryTree(std::string path, Hook before_step = {})
      : path_(std::move(path)), before_step_(std::move(before_step)) {}

  // True if the file or folder exists.
  Result<bool> exists(const std::string& name) const;
  // Returns the names in a folder, sorted; "": the directory itself. Empty if the folder does not
  // exist.
  Result<std::vector<std::string>> names(const std::string& folder) const;
  // Returns the contents of a file; no value: it does not exist. Fails for a file of more than
  // `most` bytes, and for anything but a regular file.
  Result<std::optional<std::string>> read(const std::string& name, std::size_t most) const;
  // Creates or replaces a file, completely or not at all.
  Result<void> store(const std::string& name, std::string_view contents);
  // Renames a file or a folder. The new name must not exist.
  Result<void> move(const std::string& from, const std::string& to);
  // Removes a file, or a folder with all its contents, if it exists. A crash may leave part of the
  // folder.
  Result<void> remove(const std::string& name);

 private:
  std::string path_of(const std::string& name) const;
  Result<void> step() const;
  Result<void> sync_folder_of(const std::string& name) const;
  Result<void> remove_files(const std::string& name);

  std::string path_;
  Hook before_step_;
};

}  // namespace tubed::disk
