#include "os/path_steps.h"

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace tubed::os {

namespace {

// Empty: it cannot be read, or is longer than a path may be.
std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> target;
  const ssize_t bytes = ::readlink(link.c_str(), target.data(), target.size());
  if (bytes <= 0 || static_cast<std::size_t>(bytes) == target.size()) return {};
  return {target.data(), static_cast<std::size_t>(bytes)};
}

// Removes the first name from `path`, with the slashes around it. Empty: there is none.
std::string take_name(std::string& path) {
  const std::size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) {
    path.clear();
    return {};
  }
  const std::size_t end = std::min(path.find('/', begin), path.size());
  std::string name = path.substr(begin, end - begin);
  const std::size_t next = path.find_first_not_of('/', end);
  path.erase(0, std::min(next, path.size()));
  return name;
}

std::string root_of(std::string_view path) {
  return path.starts_with('/') ? "/" : ".";
}

}  // namespace

std::vector<PathStep> path_steps(const std::string& path) {
  std::vector<PathStep> steps;
  std::string directory = root_of(path);
  std::string rest = path;
  int links = 0;
  for (std::string name = take_name(rest); !name.empty(); name = take_name(rest)) {
    if (name == ".") continue;
    const std::string next = directory.ends_with('/') ? directory + name : directory + '/' + name;
    if (name == "..") {
      directory = next;
      continue;
    }
    struct stat status {};
    const bool exists = ::lstat(next.c_str(), &status) == 0;
    if (exists && S_ISLNK(status.st_mode)) {
      steps.push_back({directory, name});
      const std::string target = target_of(next);
      if (target.empty() || ++links > kMostLinks) break;
      if (target.starts_with('/')) directory.assign(1, '/');
      rest = rest.empty() ? target : target + '/' + rest;
    } else if (exists && S_ISDIR(status.st_mode) && !rest.empty()) {
      directory = next;
    } else {
      steps.push_back({directory, name});
      break;
    }
  }
  return steps;
}

}  // namespace tubed::os
