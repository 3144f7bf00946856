#include "config/load.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/table.h"
#include "config/toml_file.h"

namespace tubed {
namespace {

void apply_flags(const CommandLine& line, Settings& settings) {
  const auto rows = config::settings_table();
  for (const auto& [key, value] : line.settings) {
    std::ranges::find(rows, key, &config::Setting::key)->set(settings, value);
  }
  const auto loudest = static_cast<std::size_t>(LogLevel::debug);
  const auto level = static_cast<std::size_t>(settings.log_level);
  const auto steps = std::min(line.louder, loudest - level);
  settings.log_level = static_cast<LogLevel>(level + steps);
}

// Settles whose listeners count.
Result<void> choose_listeners(const CommandLine& line, Settings& settings) {
  if (!line.listeners.empty()) {
    settings.listeners = line.listeners;
    return {};
  }
  if (!line.port) return {};
  // A port that is silently without effect, or replaces addresses, would surprise either way.
  if (!settings.listeners.empty()) {
    return Error{fmt::format("-p/--port: {} has listeners with ports of their own; give -l as well",
                             config::printable(line.config_file))};
  }
  settings.listeners.resize(1);
  settings.listeners.front().port = *line.port;
  return {};
}

// Which journal a task copies is for the settings to say.
Result<void> check_task(const CommandLine& line, const Settings& settings) {
  const bool copies = line.task == Task::salvage || line.task == Task::backup;
  if (!copies || !settings.journal_directory.empty()) return {};
  return Error{fmt::format("{}: journal.directory is not set; give -b as well",
                           config::printable(line.config_file))};
}

// A journal needs room for the segment it writes, the one it clears, and what it keeps back.
constexpr std::uint64_t kFewestSegments = 4;

Result<void> check_journal(const Settings& settings) {
  const std::uint64_t least = kFewestSegments * segment_bytes_in_force(settings);
  if (settings.journal_max_bytes == 0 || settings.journal_max_bytes >= least) return {};
  return Error{
      fmt::format("journal.max_bytes: {} is less than {} segments (journal.segment_size, or eight "
                  "jobs of limits.job_bytes), {}",
                  settings.journal_max_bytes, kFewestSegments, least)};
}

Result<void> check_http(const Settings& settings) {
  const auto taken = [&](const Listen& listen) { return clash(listen, *settings.http_listen); };
  if (!settings.http_listen || std::ranges::none_of(settings.listeners, taken)) return {};
  return Error{
      fmt::format("http.listen: clients already connect to {}", to_string(*settings.http_listen))};
}

}  // namespace

Result<Settings> load_settings(const CommandLine& line) {
  Settings settings;
  settings.listeners.clear();
  if (!line.config_file.empty()) {
    const auto read = config::read_toml_file(line.config_file, settings);
    if (!read) return read.error();
  }
  apply_flags(line, settings);
  const auto has_journal = check_task(line, settings);
  if (!has_journal) return has_journal.error();
  const auto has_room = check_journal(settings);
  if (!has_room) return has_room.error();
  const auto chosen = choose_listeners(line, settings);
  if (!chosen) return chosen.error();
  if (settings.listeners.empty()) settings.listeners.resize(1);
  const auto apart = check_http(settings);
  if (!apart) return apart.error();
  return settings;
}

}  // namespace tubed
