// The subset of YAML that stats and lists use. Many clients read it without a YAML parser, so the
// layout is that of beanstalkd, byte for byte. Such clients also take quotes for a part of a name,
// so a text has quotes only where a YAML parser would not read it as that text without them.
// [notes: stats, in order]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace tubed::protocol {

// True if a parser of YAML 1.1 or 1.2 reads `text` without quotes as that text. False if one reads
// a number, a truth value, null or a date, and for every text that is not the name of a tube: an
// empty text, or one with a blank or a colon. O(text).
bool is_plain_yaml(std::string_view text);

class YamlBlock {
 public:
  // The beginning of every block.
  static constexpr std::string_view kBegin = "---\n";

  // `expected_bytes`: the capacity to reserve.
  explicit YamlBlock(std::size_t expected_bytes = 0) : text_(kBegin) {
    if (expected_bytes > 0) text_.reserve(expected_bytes);
  }

  // `key: value`
  void number(std::string_view key, std::uint64_t value);
  void plain(std::string_view key, std::string_view value);
  // `key: value`, or `key: "value"` if `value` is not plain YAML; the value contains no quote,
  // backslash or line end
  void text(std::string_view key, std::string_view value);
  // `key: seconds.microseconds`
  void seconds(std::string_view key, Duration value);
  // `- value`
  void item(std::string_view value);

  std::string_view text() const { return text_; }
  // Moves the text out of the block.
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace tubed::protocol
