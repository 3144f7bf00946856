// The subset of YAML that stats and lists use. Clients read it without a YAML parser, so quoting
// and layout are those of beanstalkd 1.13, byte for byte. [notes: stats, in order]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace tubed::protocol {

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
  // `key: "value"`; the value contains no quote, backslash or line end
  void quoted(std::string_view key, std::string_view value);
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
