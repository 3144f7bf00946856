#include "tools/docs/fuzz_dictionary.h"

#include <set>

#include "commands/table.h"
#include "test_mode/table.h"

namespace tubed::docs {

// Besides the names of commands it has one complete line per command, and numbers at the limits of
// 32 and 64 bits, which the parser treats differently. A set sorts the words, so the output is
// stable.
std::string fuzz_dictionary() {
  std::set<std::string> words = {"\\x0d\\x0a", " ",          "0",          "1",
                                 "65535",      "4294967295", "4294967296", "18446744073709551615",
                                 "default",    "tube",       "-tube",      "\\x00"};
  const auto add = [&](const commands::Command& command) {
    words.insert(std::string(command.name));
    std::string example(command.name);
    for (const auto& argument : command.arguments) {
      constexpr std::string_view kWords = "one of: ";
      const bool is_word = argument.type.starts_with(kWords);
      const std::string_view type = argument.type.substr(is_word ? kWords.size() : 0);
      example.append(" ").append(is_word ? type.substr(0, type.find(' ')) : "1");
    }
    if (command.begin_body != nullptr) example.append("\\x0d\\x0aa");
    words.insert(example + "\\x0d\\x0a");
  };
  for (const auto& command : commands::command_table()) add(command);
  for (const auto& command : test_mode::verb_table()) add(command);
  std::string dictionary = "# Generated from the tables of commands and test verbs.\n";
  for (const std::string& word : words) dictionary.append("\"").append(word).append("\"\n");
  return dictionary;
}

}  // namespace tubed::docs
