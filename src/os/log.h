// Log: writes one line per event to stderr, as text, for journald, or as JSON.
//
// An event has a name and fields. The body of a job is never logged. Events that a client can cause
// go through limited(), which bounds their rate. Writing never blocks: a line that stderr does not
// accept at once is dropped, and the next line counts the dropped lines in its field `lost`.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/log_level.h"
#include "base/time.h"

namespace tubed::os {

// True if stderr is connected to journald. A line may then begin with its priority, for example
// "<3>" for an error.
bool stderr_is_the_journal();

class Log {
 public:
  using Level = LogLevel;
  using Format = LogFormat;

  struct Field {
    Field(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}
    Field(std::string_view field_key, const char* text) : key(field_key), value(text) {}
    Field(std::string_view field_key, const std::string& text) : key(field_key), value(text) {}
    Field(std::string_view field_key, std::uint64_t number)
        : key(field_key), value(std::to_string(number)), is_number(true) {}

    std::string_view key;
    std::string value;
    bool is_number = false;
  };
  using Fields = std::initializer_list<Field>;  // a field without a key is left out
  // A field that is left out if its text is empty.
  static Field optional(std::string_view key, std::string_view text) {
    return Field(text.empty() ? std::string_view() : key, text);
  }

  // Writes a complete line without blocking. Returns false if the line is lost.
  using Writer = std::function<bool(std::string_view line)>;

  // Writes to stderr, with timestamps from os::wall_time().
  Log();
  // `wall_time` returns the time since 1970.
  Log(Writer writer, std::function<Duration()> wall_time);

  // Format::automatic is journald if stderr_is_the_journal(), otherwise text.
  void configure(Level level, Format format);

  void error(std::string_view event, Fields fields = {}) { write(Level::error, event, fields); }
  void warning(std::string_view event, Fields fields = {}) { write(Level::warning, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(Level::info, event, fields); }
  void debug(std::string_view event, Fields fields = {}) { write(Level::debug, event, fields); }

  // Writes at most kLimitedPerSecond lines per second for each event. The next line of the event
  // counts the omitted lines in its field `suppressed`. `event` is a literal: the log keeps the
  // view. O(1).
  void limited(Level level, Time now, std::string_view event, Fields fields = {});

  static constexpr std::uint32_t kLimitedPerSecond = 5;

 private:
  struct Window {
    Time begin;
    std::uint32_t written = 0;
    std::uint64_t suppressed = 0;
  };

  void write(Level level, std::string_view event, Fields fields, std::uint64_t suppressed = 0);

  Writer writer_;
  std::uint64_t lost_ = 0;  // dropped since the last line that was written
  std::function<Duration()> wall_time_;
  Level level_ = Level::info;
  Format format_ = Format::text;
  std::unordered_map<std::string_view, Window> windows_;
};

}  // namespace tubed::os
