// The directories in which the kernel looks names up when it opens a file. A file can change
// without being written: a name on its path can be made, removed, or replaced by a rename.
#pragma once

#include <string>
#include <vector>

namespace tubed::os {

// A name that is looked up in a directory.
struct PathStep {
  std::string directory;  // the path has no symbolic link
  std::string name;

  friend bool operator==(const PathStep&, const PathStep&) = default;
};

// Returns the steps of opening `path` at which the file may become another: each symbolic link on
// the path, the file itself, and, if a name does not exist, that name, which is then the last step.
// Directories on the path are not listed. At most kMostLinks links are followed. O(names) system
// calls. [path_resolution(7)]
std::vector<PathStep> path_steps(const std::string& path);
inline constexpr int kMostLinks = 40;

}  // namespace tubed::os
