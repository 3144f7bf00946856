// StatsBlock: the lines of the replies to stats, stats-tube and stats-job; and the lists of tubes.
//
// Reads only the subset of YAML that servers write: one line for each key, without nesting.
// [protocol: stats] Control characters and bytes beyond ASCII become '?', because the text may be
// printed on a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tubed::client {

class StatsBlock {
 public:
  struct Line {
    std::string key;
    std::string value;    // without quotes
    bool quoted = false;  // the value is text, whatever its form
  };

  StatsBlock() = default;
  explicit StatsBlock(std::string_view block);

  const std::vector<Line>& lines() const { return lines_; }
  // No value: no such line. O(lines).
  std::optional<std::string_view> text(std::string_view key) const;
  // No value: no such line, or its value is not a whole number.
  std::optional<std::uint64_t> number(std::string_view key) const;
  // number(), or 0 without a value.
  std::uint64_t count(std::string_view key) const { return number(key).value_or(0); }

 private:
  std::vector<Line> lines_;
};

// The items of list-tubes and list-tubes-watched.
std::vector<std::string> list_items(std::string_view block);

}  // namespace tubed::client
