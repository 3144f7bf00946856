// Settings: everything an operator can decide, as plain values.
//
// Owns no rule about them: keys, bounds, defaults and words are the rows of config/table.h.
// Invariant: values that came through load_settings() are within their rows' bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "config/listen.h"
#include "engine/types.h"

namespace tubed {

// In the order of the words in config/table.cc.
enum class LogLevel : std::uint8_t { error, warning, info, debug };

// `auto` is a word of C++: automatic is the row's "auto".
enum class LogFormat : std::uint8_t { automatic, text, journald, json };

// What ends a server that drains.
enum class DrainExit : std::uint8_t { never, when_idle, when_empty };

// Two values of Settings::journal_sync; any other is an interval.
inline constexpr Duration kSyncAlways = Duration::zero();
inline constexpr Duration kSyncNever = Duration::max();

struct Settings {
  // Every setting at its row's default, and one listener at the default address.
  Settings();

  std::string user;               // empty: stay who we are
  std::string pid_file;           // empty: none
  std::string journal_directory;  // empty: no journal, jobs are in memory only
  Duration journal_sync{};
  std::uint64_t journal_segment_bytes = 0;
  std::uint64_t journal_max_bytes = 0;  // zero: no bound but the disk's
  Limits queue;
  std::uint32_t connections = 0;
  std::uint32_t line_bytes = 0;     // with the line end
  std::uint64_t output_bytes = 0;   // buffered for one client
  std::uint64_t output_memory = 0;  // for all clients together
  std::uint64_t input_memory = 0;   // the same
  Duration idle_timeout{};          // zero: never
  Duration stall_timeout{};
  Duration shutdown_timeout{};
  DrainExit drain_exit{};
  Duration drain_timeout{};           // zero: for ever
  std::optional<Listen> http_listen;  // none: no HTTP endpoint
  Duration tcp_keepalive{};
  std::uint32_t tcp_backlog = 0;
  LogLevel log_level{};
  LogFormat log_format{};
  std::vector<Listen> listeners;  // never empty
  bool default_listener = true;   // none is configured: `listeners` has the default one

  // Compares row by row, and the listeners, whether they are configured or not.
  friend bool operator==(const Settings& one, const Settings& other);
};

// The size of the journal's files: as set, but room for eight of the largest jobs, so that on a
// full disk there is a place for whatever must go on.
std::uint64_t segment_bytes_in_force(const Settings& settings);

}  // namespace tubed
