#include "config/drop_ins.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "config/value.h"

namespace tubed::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".toml";

bool is_drop_in(std::string_view name) {
  return name.ends_with(kEnding) && !name.starts_with('.');
}

Error cannot_read(const std::string& path, std::string_view reason) {
  return Error{fmt::format("{}: cannot read: {}", printable(path), reason)};
}

// The first entry, or the end if the directory does not exist.
Result<fs::directory_iterator> entries_of(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error == std::errc::no_such_file_or_directory) return fs::directory_iterator();
  if (error) return cannot_read(directory, error.message());
  return entries;
}

}  // namespace

std::string drop_in_directory(const std::string& config_file) {
  if (!config_file.ends_with(kEnding)) return "";
  return config_file.substr(0, config_file.size() - kEnding.size()) + ".d";
}

Result<std::vector<std::string>> drop_in_files(const std::string& config_file) {
  std::vector<std::string> files;
  const std::string directory = drop_in_directory(config_file);
  if (directory.empty()) return files;
  auto entries = TRY(entries_of(directory));
  std::error_code error;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (!is_drop_in(entries->path().filename().native())) continue;
    if (files.size() == kMaxDropIns)
      return cannot_read(directory, fmt::format("more than {} files", kMaxDropIns));
    files.push_back(entries->path().native());
  }
  if (error) return cannot_read(directory, error.message());
  std::ranges::sort(files);
  // Reading a pipe would wait for its writer. A file that is missing by now is reported when it is
  // read.
  const auto is_special = [](const std::string& file) {
    std::error_code ignored;
    const auto type = fs::status(file, ignored).type();
    return type != fs::file_type::regular && type != fs::file_type::not_found &&
           type != fs::file_type::none;
  };
  const auto special = std::ranges::find_if(files, is_special);
  if (special != files.end()) return cannot_read(*special, "not a regular file");
  return files;
}

}  // namespace tubed::config
