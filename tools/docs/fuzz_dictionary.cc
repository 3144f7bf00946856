// The entries for each row of the command tables: its name, a complete line without its optional
// arguments, and complete lines with them and with times in milliseconds. Then the words that
// arguments take: the words of the rows, tags, keys of policies, and the unit of milliseconds.
// Last, numbers at the limits of 32 and 64 bits, which the parser treats differently.
//
// libFuzzer ignores an entry of more than 64 bytes, so no line has all tags.
#include "tools/docs/fuzz_dictionary.h"

#include <algorithm>
#include <array>
#include <set>

#include "commands/table.h"
#include "test_mode/table.h"

namespace tubed::docs {

namespace {

constexpr std::string_view kLineEnd = "\\x0d\\x0a";
constexpr std::string_view kWords = "one of: ";

template <class Type>
constexpr std::string_view type_of() {
  return protocol::describe(static_cast<const Type*>(nullptr));
}

// Arguments of one type in the lines with all arguments.
using Samples = std::array<std::string_view, 2>;
struct SamplesOfType {
  std::string_view type;
  Samples samples;
};
constexpr Samples kTags = {"idp:k con:k:2 grp:g", "aft:g max:3:bury ttl:60"};
constexpr Samples kFilters = {"body:a%20b age>1 pri<3", "tag:grp:g failures>0 age<9 pri>1"};
constexpr std::array kSamples = {
    SamplesOfType{type_of<TimeSpan>(), {"500ms", "500ms"}},
    SamplesOfType{type_of<protocol::Milliseconds>(), {"500ms", "500ms"}},
    SamplesOfType{type_of<protocol::JobIds>(), {"1 2", "1 2 3"}},
    SamplesOfType{type_of<protocol::TagText>(), kTags},
    SamplesOfType{type_of<protocol::FilterText>(), kFilters},
    SamplesOfType{type_of<protocol::PolicySetting>(), {"max-attempts 3", "backoff -"}},
    SamplesOfType{type_of<protocol::Token>(), {"1", "2"}},
    SamplesOfType{type_of<protocol::PriorityAndDelay>(), {"1 500ms", "1 0"}},
};

// Of an argument that must be there: the first word that it takes, or a number, which is also the
// name of a tube.
std::string_view plain_sample(std::string_view type) {
  if (!type.starts_with(kWords)) return "1";
  type.remove_prefix(kWords.size());
  return type.substr(0, type.find(' '));
}

Samples samples_of(std::string_view type) {
  const auto found = std::ranges::find(kSamples, type, &SamplesOfType::type);
  if (found != kSamples.end()) return found->samples;
  return {plain_sample(type), plain_sample(type)};
}

// Calls visit(word) for each word of the text.
template <class Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    visit(word);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
}

void add_command(const commands::Command& command, std::set<std::string>& words) {
  std::string plain(command.name);
  std::array<std::string, 2> full = {plain, plain};
  for (const commands::ArgumentText& argument : command.arguments) {
    const Samples samples = samples_of(argument.type);
    if (!argument.optional) plain.append(" ").append(plain_sample(argument.type));
    for (std::size_t i = 0; i < full.size(); ++i) full[i].append(" ").append(samples[i]);
    if (!argument.type.starts_with(kWords)) continue;
    for_each_word(argument.type.substr(kWords.size()),
                  [&](std::string_view word) { words.emplace(word); });
  }
  words.emplace(command.name);
  for (std::string line : {plain, full[0], full[1]}) {
    if (command.begin_body != nullptr) line.append(kLineEnd).append("a");
    words.insert(line.append(kLineEnd));
  }
}

}  // namespace

// A set sorts the words, so the output is stable.
std::string fuzz_dictionary() {
  std::set<std::string> words = {
      std::string(kLineEnd),  " ",       "0",    "1",     "65535", "4294967295", "4294967296",
      "18446744073709551615", "default", "tube", "-tube", "\\x00", "ms"};
  for (const auto& command : commands::command_table()) add_command(command, words);
  for (const auto& command : test_mode::verb_table()) add_command(command, words);
  for (const std::string_view tags : kTags) {
    for_each_word(tags,
                  [&](std::string_view tag) { words.emplace(tag.substr(0, tag.find(':') + 1)); });
  }
  for (const std::string_view filters : kFilters) {
    for_each_word(filters, [&](std::string_view filter) {
      words.emplace(filter.substr(0, filter.find_first_of(":<>") + 1));
    });
  }
  for (const PolicyKeyRow& key : policy_keys()) words.emplace(key.name);
  std::string dictionary = "# Generated from the tables of commands and test verbs.\n";
  for (const std::string& word : words) dictionary.append("\"").append(word).append("\"\n");
  return dictionary;
}

}  // namespace tubed::docs
