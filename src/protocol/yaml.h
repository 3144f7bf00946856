// The little YAML that stats and lists are written in. Clients read it without a YAML parser, so
// quoting and layout are beanstalkd 1.13's to the byte. [notes: stats, in order]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace tubed::protocol {

class YamlBlock {
 public:
  // What every block begins with.
  static constexpr std::string_view kBegin = "---\n";

  // `expected_bytes`: room to have from the beginning.
  explicit YamlBlock(std::size_t expected_bytes = 0) : text_(kBegin) {
    if (expected_bytes > 0) text_.reserve(expected_bytes);
  }

  // `key: value`
  void number(std::string_view key, std::uint64_t value);
  void plain(std::string_view key, std::string_view value);
  // `key: "value"`; the value has no quote, backslash or line end in it
  void quoted(std::string_view key, std::string_view value);
  // `key: seconds.microseconds`
  void seconds(std::string_view key, Duration value);
  // `- value`
  void item(std::string_view value);

  std::string_view text() const { return text_; }
  // The text, which the block then no longer has.
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace tubed::protocol
