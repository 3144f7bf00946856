#include "config/places.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/table.h"

namespace tubed::config {
namespace {

std::string flag_of(std::string_view key) {
  return shown_flag(*std::ranges::find(settings_table(), key, &Setting::key));
}

}  // namespace

std::string Places::key(std::string_view key) const {
  if (is_flag(key)) return flag_of(key);
  const auto in_file = lines_.keys.find(key);
  return in_file == lines_.keys.end() ? std::string(key)
                                      : fmt::format("{}: {}", file_line(in_file->second), key);
}

std::string Places::mention(std::string_view key) const {
  const auto in_file = lines_.keys.find(key);
  return fmt::format("{}, {}", key,
                     is_flag(key)                   ? flag_of(key)
                     : in_file != lines_.keys.end() ? file_line(in_file->second)
                                                    : "the default");
}

std::string Places::listener(std::size_t index) const {
  if (!line_.listeners.empty()) return "-l/--listen";
  if (line_.port) return "-p/--port";
  return lines_.listeners.empty() ? "the default" : file_line(lines_.listeners[index]);
}

std::string Places::role(std::size_t index) const {
  return file_line(lines_.roles[index]);
}

bool Places::is_flag(std::string_view key) const {
  return std::ranges::count(line_.settings, key, [](const auto& one) { return one.first; }) > 0;
}

std::string Places::file_line(std::uint32_t line) const {
  return fmt::format("{}:{}", printable(line_.config_file), line);
}

}  // namespace tubed::config
