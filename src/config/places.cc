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
                                      : fmt::format("{}: {}", lines_.place(in_file->second), key);
}

std::string Places::mention(std::string_view key) const {
  return fmt::format("{}, {}", key, origin(key));
}

// -V raises log.level, and a server in test mode has another default of it.
std::string Places::origin(std::string_view key) const {
  const bool is_log_level = key == "log.level";
  if (is_log_level && line_.log_level_steps > 0) return "-V";
  if (is_flag(key)) return flag_of(key);
  const auto in_file = lines_.keys.find(key);
  if (in_file != lines_.keys.end()) return lines_.place(in_file->second);
  return is_log_level && line_.test_mode ? "--test-mode" : "the default";
}

std::string Places::listener(std::size_t index) const {
  if (!line_.listeners.empty()) return "-l/--listen";
  if (line_.port) return "-p/--port";
  if (!lines_.listeners.empty()) return lines_.place(lines_.listeners[index]);
  return line_.test_mode ? "--test-mode" : "the default";
}

std::string Places::role(std::size_t index) const {
  return lines_.place(lines_.roles[index]);
}

std::string Places::policy(std::size_t index) const {
  return lines_.place(lines_.policies[index]);
}

bool Places::is_flag(std::string_view key) const {
  return std::ranges::count(line_.settings, key, [](const auto& one) { return one.first; }) > 0;
}

}  // namespace tubed::config
