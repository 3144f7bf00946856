#include "protocol/arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/numbers.h"

namespace tubed::protocol {

namespace {

void skip_spaces(std::string_view& text) {
  if (text.empty() || text.front() != ' ') return;  // the usual case
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// False: no number is at the front of the text.
template <class Number>
[[gnu::always_inline]] inline bool take(std::string_view& text, Number& value) {
  const auto number = take_number<Number>(text);
  value = number.value_or(value);
  return number.has_value();
}

}  // namespace

bool ArgumentCursor::separator() {
  if (rest_.empty() || rest_.front() != ' ') return false;
  rest_.remove_prefix(1);
  return true;
}

// Each command reads numbers: no call is left in these.
[[gnu::flatten]] bool ArgumentCursor::read(std::uint64_t& value) {
  skip_spaces(rest_);
  return take(rest_, value) && at_field_end();
}

[[gnu::flatten]] bool ArgumentCursor::read(std::uint32_t& value) {
  skip_spaces(rest_);
  return take(rest_, value) && at_field_end();
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

bool ArgumentCursor::read(Token& value) {
  constexpr unsigned char kDelete = 0x7f;
  const auto may_be_in_token = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != kDelete;
  };
  const bool good =
      rest_.size() <= Token::kMostBytes && std::ranges::all_of(rest_, may_be_in_token);
  value.text = good ? rest_ : std::string_view();
  rest_ = {};
  return true;
}

bool ArgumentCursor::read(PolicySetting& value) {
  Word name;
  Word text;
  if (!read(name) || !separator() || !read(text)) return false;
  const auto key = find_policy_key(name.text);
  if (!key) return false;
  value = {.key = *key, .value = text.text};
  return text.text == kNoPolicyValue || is_policy_value(*key, text.text);
}

bool ArgumentCursor::read_word(std::span<const std::string_view> words, std::uint8_t& index) {
  Word word;
  if (!read(word)) return false;
  const auto found = std::ranges::find(words, word.text);
  if (found == words.end()) return false;
  index = static_cast<std::uint8_t>(found - words.begin());
  return true;
}

bool ArgumentCursor::read_unit(std::uint64_t& number, bool& in_milliseconds) {
  constexpr std::string_view kUnit = "ms";
  skip_spaces(rest_);
  const std::string_view digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
  if (!ArgumentCursor(digits).read(number)) return false;
  rest_.remove_prefix(digits.size());
  in_milliseconds = rest_.starts_with(kUnit);
  if (in_milliseconds) rest_.remove_prefix(kUnit.size());
  return at_field_end();
}

bool ArgumentCursor::read_milliseconds(TimeSpan& value) {
  std::uint64_t number = 0;
  bool in_milliseconds = false;
  if (!read_unit(number, in_milliseconds) || !in_milliseconds) return false;
  if (number > UINT32_MAX * 1000ULL) return false;
  value = TimeSpan::of_milliseconds(number);
  return true;
}

bool ArgumentCursor::read(Milliseconds& value) {
  constexpr std::uint64_t kMost = (1ULL << 32) * 1000;
  std::uint64_t number = 0;
  bool in_milliseconds = false;
  if (!read_unit(number, in_milliseconds)) return false;
  if (number > (in_milliseconds ? kMost : kMost / 1000)) return false;
  value.count = in_milliseconds ? number : number * 1000;
  return true;
}

bool ArgumentCursor::read(JobIds& value) {
  value = {.text = rest_};
  do {
    JobId id = 0;
    if (value.count++ == JobIds::kMost || !read(id)) return false;
  } while (separator());
  return true;
}

bool ArgumentCursor::read(FilterText& value) {
  JobFilter filter;
  value.text = std::exchange(rest_, {});
  return parse_filters(value.text, filter);
}

bool ArgumentCursor::read(TagText& value) {
  JobTags tags;
  value.text = std::exchange(rest_, {});
  return parse_tags(value.text, tags);
}

namespace {

// Takes the text up to the next colon, and that colon.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

bool is_number(std::string_view text, std::uint32_t& number) {
  ArgumentCursor cursor(text);
  return cursor.read(number) && cursor.at_end();
}

// No key and no name of a tube has a colon.
bool parse_unique(std::string_view value, JobTags& tags) {
  if (!tags.unique_key.empty() || value.ends_with(':')) return false;
  tags.unique_key = take_part(value);
  return is_tube_name(tags.unique_key) && (value.empty() || is_number(value, tags.cooldown.count));
}

bool parse_max(std::string_view value, JobTags& tags) {
  if (tags.max_attempts || value.ends_with(':')) return false;
  const std::string_view number = take_part(value);
  tags.dead = value;
  return is_number(number, tags.max_attempts.emplace()) && (value.empty() || is_tube_name(value));
}

bool parse_ttl(std::string_view value, JobTags& tags) {
  return !tags.time_to_live && is_number(value, tags.time_to_live.emplace().count);
}

bool parse_concurrency(std::string_view value, JobTags& tags) {
  if (!tags.concurrency_key.empty() || value.ends_with(':')) return false;
  tags.concurrency_key = take_part(value);
  if (!is_tube_name(tags.concurrency_key)) return false;
  return value.empty() || (is_number(value, tags.concurrency_limit) && tags.concurrency_limit > 0);
}

bool parse_group(std::string_view value, std::string_view& group) {
  if (!group.empty()) return false;
  group = value;
  return is_tube_name(value);
}

bool parse_tag(std::string_view text, JobTags& tags) {
  if (text.find(':') == std::string_view::npos) return false;
  const std::string_view word = take_part(text);
  if (word == word_of(Tag::unique)) return parse_unique(text, tags);
  if (word == word_of(Tag::max_attempts)) return parse_max(text, tags);
  if (word == word_of(Tag::concurrency)) return parse_concurrency(text, tags);
  if (word == word_of(Tag::group)) return parse_group(text, tags.group);
  if (word == word_of(Tag::after)) return parse_group(text, tags.after);
  return word == word_of(Tag::time_to_live) && parse_ttl(text, tags);
}

}  // namespace

bool parse_tags(std::string_view text, JobTags& tags) {
  do {
    skip_spaces(text);
    const std::string_view tag = text.substr(0, text.find(' '));
    text.remove_prefix(tag.size());
    if (!parse_tag(tag, tags)) return false;
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
  return take(text, size.bytes) && (text.empty() || text.front() == ' ');
}

}  // namespace tubed::protocol
