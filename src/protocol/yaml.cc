#include "protocol/yaml.h"

#include <charconv>

namespace tubed::protocol {

namespace {

void append_number(std::string& text, std::uint64_t value) {
  char digits[20];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, result.ptr);
}

}  // namespace

void YamlBlock::number(std::string_view key, std::uint64_t value) {
  text_.append(key).append(": ");
  append_number(text_, value);
  text_.push_back('\n');
}

void YamlBlock::plain(std::string_view key, std::string_view value) {
  text_.append(key).append(": ").append(value).push_back('\n');
}

void YamlBlock::quoted(std::string_view key, std::string_view value) {
  text_.append(key).append(": \"").append(value).append("\"\n");
}

void YamlBlock::seconds(std::string_view key, Duration value) {
  constexpr std::int64_t kMicroseconds = 1'000'000;
  const auto total = std::chrono::duration_cast<std::chrono::microseconds>(value).count();
  std::string fraction = std::to_string(total % kMicroseconds);
  fraction.insert(0, 6 - fraction.size(), '0');
  plain(key, std::to_string(total / kMicroseconds) + "." + fraction);
}

void YamlBlock::item(std::string_view value) {
  text_.append("- ").append(value).push_back('\n');
}

}  // namespace tubed::protocol
