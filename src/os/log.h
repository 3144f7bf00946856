// Log: one line an event on stderr, for people, for journald, or as JSON.
//
// An event has a name and fields; never a job's body. Events that a client can cause are limited to
// so many a second each, and the next line says how many were left out.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"

namespace tubed::os {

// journald reads stderr: a line may begin with its priority, for example "<3>" for an error.
bool stderr_is_the_journal();

class Log {
 public:
  enum class Level : std::uint8_t { error, warning, info, debug };
  enum class Format : std::uint8_t { automatic, text, journald, json };

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
  using Fields = std::initializer_list<Field>;

  // Writes a whole line, without blocking; false: it is lost, which the next line tells.
  using Writer = std::function<bool(std::string_view line)>;

  Log();
  // `wall_time`: what has passed since 1970.
  Log(Writer writer, std::function<Duration()> wall_time);

  // Automatic: journald's prefixes when stderr is the journal, else text.
  void configure(Level level, Format format);

  void error(std::string_view event, Fields fields = {}) { write(Level::error, event, fields); }
  void warning(std::string_view event, Fields fields = {}) { write(Level::warning, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(Level::info, event, fields); }
  void debug(std::string_view event, Fields fields = {}) { write(Level::debug, event, fields); }

  // The same, for events that a client can cause: kLimitedPerSecond lines a second for each event
  // name. `event` is a literal: it is kept.
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
  std::uint64_t lost_ = 0;  // lines that could not be written since the last that was
  std::function<Duration()> wall_time_;
  Level level_ = Level::info;
  Format format_ = Format::text;
  std::unordered_map<std::string_view, Window> windows_;
};

}  // namespace tubed::os
