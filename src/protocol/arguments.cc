#include "protocol/arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tubed::protocol {

namespace {

constexpr std::array<bool, 256> kNameCharacters = [] {
  std::array<bool, 256> allowed{};
  constexpr std::string_view all =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()";
  for (const char c : all) allowed[static_cast<unsigned char>(c)] = true;
  return allowed;
}();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void skip_spaces(std::string_view& text) {
  if (text.empty() || text.front() != ' ') return;  // the usual case
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// Removes a number from the front. False if no digit is there or the type cannot hold the number.
template <class Number>
[[gnu::always_inline]] inline bool take_number(std::string_view& text, Number& value) {
  if (text.empty() || !is_digit(text.front())) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

bool is_tube_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxTubeNameBytes || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return kNameCharacters[static_cast<unsigned char>(c)]; });
}

bool ArgumentCursor::separator() {
  if (rest_.empty() || rest_.front() != ' ') return false;
  rest_.remove_prefix(1);
  return true;
}

bool ArgumentCursor::read(std::uint64_t& value) {
  skip_spaces(rest_);
  return take_number(rest_, value) && at_field_end();
}

bool ArgumentCursor::read(std::uint32_t& value) {
  skip_spaces(rest_);
  return take_number(rest_, value) && at_field_end();
}

bool ArgumentCursor::read(TubeName& value) {
  value.text = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(value.text.size());
  return is_tube_name(value.text);
}

bool ArgumentCursor::read(Word& value) {
  value.text = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(value.text.size());
  return !value.text.empty();
}

bool ArgumentCursor::read_word(std::span<const std::string_view> words, std::uint8_t& index) {
  Word word;
  if (!read(word)) return false;
  const auto found = std::ranges::find(words, word.text);
  if (found == words.end()) return false;
  index = static_cast<std::uint8_t>(found - words.begin());
  return true;
}

bool ArgumentCursor::read(TimeSpan& value) {
  constexpr std::uint64_t kMost = (1ULL << 32) * 1000;
  std::uint64_t number = 0;
  skip_spaces(rest_);
  if (!take_number(rest_, number)) return false;
  const bool in_milliseconds = rest_.starts_with("ms");
  if (in_milliseconds) rest_.remove_prefix(2);
  if (number > (in_milliseconds ? kMost : kMost / 1000)) return false;
  value.milliseconds = in_milliseconds ? number : number * 1000;
  return at_field_end();
}

bool ArgumentCursor::read(JobIds& value) {
  value = {.text = rest_};
  do {
    JobId id = 0;
    if (value.count++ == JobIds::kMost || !read(id)) return false;
  } while (separator());
  return true;
}

bool ArgumentCursor::read(TagText& value) {
  JobTags tags;
  value.text = std::exchange(rest_, {});
  return parse_tags(value.text, tags);
}

bool parse_tags(std::string_view text, JobTags& tags) {
  do {
    skip_spaces(text);
    const std::string_view tag = text.substr(0, text.find(' '));
    text.remove_prefix(tag.size());
    constexpr std::string_view kUnique = "idp:";
    if (!tag.starts_with(kUnique) || !tags.unique_key.empty()) return false;
    // No key has a colon.
    const std::string_view value = tag.substr(kUnique.size());
    tags.unique_key = value.substr(0, value.find(':'));
    if (!is_tube_name(tags.unique_key)) return false;
    if (tags.unique_key.size() == value.size()) continue;
    ArgumentCursor number(value.substr(tags.unique_key.size() + 1));
    if (!number.read(tags.cooldown) || !number.at_end()) return false;
  } while (!text.empty());
  return true;
}

JobTags tags_of(const TagText& tags) {
  JobTags values;
  parse_tags(tags.text, values);
  return values;
}

bool ArgumentCursor::read(SpacedTubeName& value) {
  skip_spaces(rest_);
  return read(static_cast<TubeName&>(value));
}

bool salvage_body_size(std::string_view text, std::size_t fields_before, BodySize& size) {
  skip_spaces(text);
  for (std::size_t i = 0; i < fields_before; ++i) {
    text.remove_prefix(std::min(text.find(' '), text.size()));
    skip_spaces(text);
  }
  return take_number(text, size.bytes) && (text.empty() || text.front() == ' ');
}

}  // namespace tubed::protocol
