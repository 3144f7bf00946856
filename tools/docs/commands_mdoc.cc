#include "tools/docs/commands_mdoc.h"

#include <string_view>

#include "commands/table.h"
#include "tools/docs/mdoc.h"

namespace tubed::docs {
namespace {

// "INSERTED <id>" as macros: Sy for a word as it is sent, Ar for a value.
std::string reply_macros(std::string_view reply) {
  std::string result;
  while (!reply.empty()) {
    const auto word = reply.substr(0, reply.find(' '));
    reply.remove_prefix(word.size() == reply.size() ? word.size() : word.size() + 1);
    result += word.starts_with('<') ? " Ar " : " Sy ";
    result += word.starts_with('<') ? word.substr(1, word.size() - 2) : word;
  }
  return result;
}

// The usage of the command, its summary, its arguments and its replies.
std::string command_item(const commands::Command& command) {
  std::string result = ".It Ic ";
  result += command.name;
  for (const auto& argument : command.arguments) {
    result.append(argument.optional ? " Op Ar " : " Ar ").append(argument.name);
  }
  result += '\n' + mdoc_text(command.summary);
  for (const auto& argument : command.arguments) {
    result.append(".br\n.Ar ").append(argument.name).append(" :\n");
    result += mdoc_text(argument.type);
  }
  if (command.replies.empty()) return result;
  result += ".Bl -tag -width Ds -compact\n";
  for (const auto& reply : command.replies) {
    result += ".It" + reply_macros(reply.reply) + '\n' + mdoc_text(reply.meaning);
  }
  return result + ".El\n";
}

}  // namespace

std::string commands_mdoc() {
  std::string result = ".Bl -tag -width Ds\n";
  for (const auto& command : commands::command_table()) result += command_item(command);
  return result + ".El\n";
}

}  // namespace tubed::docs
