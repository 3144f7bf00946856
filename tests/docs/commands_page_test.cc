#include "tools/docs/commands_page.h"

#include <doctest/doctest.h>

#include "commands/table.h"
#include "tests/docs/mentions.h"
#include "tools/docs/fuzz_dictionary.h"

namespace tubed::docs {
namespace {

TEST_CASE("every command is on the reference page and in the fuzz dictionary") {
  const std::string page = commands_markdown();
  const std::string dictionary = fuzz_dictionary();
  for (const auto& command : commands::command_table()) {
    const std::string name(command.name);
    CHECK(mentions(page, "## " + name + "\n"));
    CHECK(mentions(dictionary, "\"" + name + "\""));
    for (const auto& reply : command.replies) {
      CHECK(mentions(page, "`" + std::string(reply.reply) + "`"));
    }
  }
}

}  // namespace
}  // namespace tubed::docs
