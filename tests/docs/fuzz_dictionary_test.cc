#include "tools/docs/fuzz_dictionary.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/handlers.h"
#include "commands/table.h"
#include "test_mode/table.h"
#include "text/numbers.h"

namespace tubed::docs {
namespace {

using commands::Command;

constexpr std::string_view kLineEnd = "\r\n";

// The bytes of an entry without its quotes.
std::string unescaped(std::string_view entry) {
  std::string bytes;
  while (!entry.empty()) {
    if (!entry.starts_with("\\x")) {
      bytes.push_back(entry.front());
      entry.remove_prefix(1);
      continue;
    }
    const auto byte = parse_number<std::uint8_t>(entry.substr(2, 2), 16);
    REQUIRE(byte.has_value());
    bytes.push_back(static_cast<char>(*byte));
    entry.remove_prefix(4);
  }
  return bytes;
}

// All entries, in the order of the dictionary.
std::vector<std::string> entries() {
  std::vector<std::string> all;
  const std::string dictionary = fuzz_dictionary();
  std::string_view rest = dictionary;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    if (line.starts_with('#')) continue;
    REQUIRE((line.size() > 2 && line.starts_with('"') && line.ends_with('"')));
    all.push_back(unescaped(line.substr(1, line.size() - 2)));
  }
  return all;
}

std::vector<Command> rows() {
  std::vector<Command> all;
  for (const Command& row : commands::command_table()) all.push_back(row);
  for (const Command& row : test_mode::verb_table()) all.push_back(row);
  return all;
}

// The arguments in each complete line of a command.
std::vector<std::string> complete_lines_of(const Command& row) {
  std::vector<std::string> all;
  for (const std::string& entry : entries()) {
    if (!entry.ends_with(kLineEnd) || entry == kLineEnd) continue;
    const std::string line = entry.substr(0, entry.find(kLineEnd));
    const std::string word = line.substr(0, line.find(' '));
    if (word == row.name) all.push_back(line.substr(std::min(word.size() + 1, line.size())));
  }
  return all;
}

}  // namespace

TEST_CASE("each complete line of the fuzz dictionary is accepted by its row's parser") {
  std::size_t lines = 0;
  for (const Command& row : rows()) {
    CAPTURE(row.name);
    const auto all = complete_lines_of(row);
    CHECK_FALSE(all.empty());
    lines += all.size();
    for (const std::string& text : all) {
      CAPTURE(text);
      commands::ArgumentStorage storage{};
      CHECK(row.parse(text, storage));
    }
    // Without and with the optional arguments.
    const bool has_optional = std::ranges::any_of(row.arguments, &commands::ArgumentText::optional);
    if (has_optional) CHECK(all.size() >= 2);
  }
  // No line has the word of another command.
  CHECK(lines == static_cast<std::size_t>(std::ranges::count_if(entries(), [](const auto& entry) {
          return entry.ends_with(kLineEnd) && entry != kLineEnd;
        })));
}

TEST_CASE("the body of a line has the announced number of bytes") {
  for (const std::string& entry : entries()) {
    const std::size_t end = entry.find(kLineEnd);
    if (end == std::string::npos || end + kLineEnd.size() == entry.size()) continue;
    CAPTURE(entry);
    CHECK(entry.substr(end) == "\r\na\r\n");
  }
}

TEST_CASE("the complete lines of a put have each tag, and milliseconds") {
  const Command& row = *commands::find_command("put");
  std::set<std::string_view> words;
  bool has_milliseconds = false;
  for (const std::string& text : complete_lines_of(row)) {
    commands::ArgumentStorage storage{};
    REQUIRE(row.parse(text, storage));
    const auto& put = commands::arguments_in<commands::PutArguments>(storage);
    for_each_tag(protocol::tags_of(put.tags),
                 [&](Tag tag, std::string_view, std::uint32_t) { words.insert(word_of(tag)); });
    has_milliseconds = has_milliseconds || put.ttr.short_by_ms > 0;
  }
  CHECK(has_milliseconds);
  const auto all = entries();
  // Tags have smaller numbers than marks.
  for (std::uint8_t number = 1; number < static_cast<std::uint8_t>(Mark::reserves); ++number) {
    const std::string_view word = word_of(static_cast<Tag>(number));
    if (word.empty()) continue;
    CAPTURE(word);
    CHECK(words.contains(word));
    CHECK(std::ranges::count(all, std::string(word) + ":") == 1);
  }
}

TEST_CASE("the fuzz dictionary has the words of arguments and the keys of policies") {
  const auto all = entries();
  const auto has = [&](std::string_view word) { return std::ranges::count(all, word) == 1; };
  for (const std::string_view word : commands::ListedWords::kWords) CHECK(has(word));
  for (const std::string_view word : commands::ModeWords::kWords) CHECK(has(word));
  for (const PolicyKeyRow& key : policy_keys()) CHECK(has(key.name));
  CHECK(has("ms"));
}

// libFuzzer ignores a longer entry.
TEST_CASE("no entry of the fuzz dictionary has more than 64 bytes") {
  for (const std::string& entry : entries()) {
    CAPTURE(entry);
    CHECK(entry.size() <= 64);
  }
}

}  // namespace tubed::docs
