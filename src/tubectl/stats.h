// Stats: the lines of stats, stats-tube and stats-job, and the lists, as a client reads them.
//
// Only the little YAML that servers write, a line each; nothing nested. [protocol: stats]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tubed::tubectl {

class Stats {
 public:
  struct Line {
    std::string key;
    std::string value;    // without its quotes
    bool quoted = false;  // then it is text, whatever it looks like
  };

  Stats() = default;
  explicit Stats(std::string_view block);

  const std::vector<Line>& lines() const { return lines_; }
  // Nothing: there is no such line. O(lines).
  std::optional<std::string_view> text(std::string_view key) const;
  // Nothing: there is no such line, or it is no whole number.
  std::optional<std::uint64_t> number(std::string_view key) const;
  // The same, with 0 for nothing.
  std::uint64_t count(std::string_view key) const { return number(key).value_or(0); }

 private:
  std::vector<Line> lines_;
};

// The items of list-tubes and list-tubes-watched.
std::vector<std::string> list_items(std::string_view block);

}  // namespace tubed::tubectl
