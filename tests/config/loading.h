// Files and command lines for the tests of config/.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "config/command_line.h"
#include "config/load.h"

namespace tubed::config_test {

// A directory of its own, removed with its contents. Files in it are named by full path.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "tubed-config-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_.string(); }

  std::string write(std::string_view contents) const { return write("tubed.toml", contents); }

  // Creates missing directories of `name`.
  std::string write(std::string_view name, std::string_view contents) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << contents;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

// Cuts `text` at its line ends.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

inline std::variant<CommandLine, Exit> parse(const std::vector<std::string>& args) {
  std::vector<const char*> pointers;
  for (const auto& arg : args) pointers.push_back(arg.c_str());
  return parse_command_line(pointers);
}

// The command line. If it is refused, an empty command line whose only warning is the exit's text.
inline CommandLine accept(const std::vector<std::string>& args) {
  auto result = parse(args);
  if (auto* line = std::get_if<CommandLine>(&result)) return *line;
  CommandLine failed;
  failed.warnings.push_back("unexpected exit: " + std::get<Exit>(result).text);
  return failed;
}

// The exit, or one with code -1.
inline Exit refuse(const std::vector<std::string>& args) {
  auto result = parse(args);
  if (auto* exit = std::get_if<Exit>(&result)) return *exit;
  return Exit{-1, "accepted"};
}

// `text` without the directory before the names of its files.
inline std::string without(const TemporaryDirectory& directory, std::string text) {
  const auto prefix = directory.path() + "/";
  for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  return text;
}

// Loads `contents` as tubed.toml, and the flags over it. The file's directory is cut from errors.
// `cluster_built_in`: as of such a build, whichever this is.
inline Result<Settings> load(std::string_view contents, CommandLine line = {},
                             bool cluster_built_in = true) {
  const TemporaryDirectory directory;
  line.config_file = directory.write(contents);
  auto result = load_settings(line, cluster_built_in);
  if (result) return result;
  return Error{without(directory, result.error().message)};
}

// "" when it loads.
inline std::string load_error(std::string_view contents, CommandLine line = {},
                              bool cluster_built_in = true) {
  const auto result = load(contents, std::move(line), cluster_built_in);
  return result ? "" : result.error().message;
}

}  // namespace tubed::config_test
