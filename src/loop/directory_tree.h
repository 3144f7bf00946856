// DirectoryTree: the names in one directory and its folders, changed durably, one step at a time.
//
// Names are relative to the directory: "journal.0000000001", "fetch/cluster". Everything blocks.
// When a function returns without an error, its effect survives a power loss; after a crash in the
// middle each of its steps has happened or not. Errors are one line that names the path; a full
// disk has the kind `no_space`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tubed::loop {

class DirectoryTree {
 public:
  // Called before each step; its error ends the operation, as a crash would. For tests.
  using Hook = std::function<Result<void>()>;

  explicit DirectoryTree(std::string path, Hook before_step = {})
      : path_(std::move(path)), before_step_(std::move(before_step)) {}

  // Of a file or a folder.
  Result<bool> exists(const std::string& name) const;
  // The names in a folder, sorted; "": the directory itself. Empty: there is no such folder.
  Result<std::vector<std::string>> names(const std::string& folder) const;
  // A new file, whole or not at all.
  Result<void> store(const std::string& name, std::string_view contents);
  // Gives a file or a folder another name, which does not exist.
  Result<void> move(const std::string& from, const std::string& to);
  // Removes a file, or a folder with everything in it, if it exists. A crash may leave a part of
  // the folder.
  Result<void> remove(const std::string& name);

 private:
  std::string path_of(const std::string& name) const;
  Result<void> step() const;
  Result<void> sync_folder_of(const std::string& name) const;
  Result<void> remove_files(const std::string& name);

  std::string path_;
  Hook before_step_;
};

}  // namespace tubed::loop
