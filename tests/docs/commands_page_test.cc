#include "tools/docs/commands_page.h"

#include <doctest/doctest.h>

#include "commands/table.h"
#include "test_mode/events.h"
#include "test_mode/table.h"
#include "tests/docs/mentions.h"
#include "tools/docs/fuzz_dictionary.h"

namespace tubed::docs {
namespace {

TEST_CASE("the page of test verbs has each verb with its replies, and each event") {
  const std::string page = test_mode_markdown();
  for (const auto& command : test_mode::verb_table()) {
    CAPTURE(command.name);
    CHECK(mentions(page, "## " + std::string(command.name) + "\n"));
    CHECK(mentions(page, command.summary));
    for (const auto& reply : command.replies) CHECK(mentions(page, reply.meaning));
  }
  for (const auto& event : test_mode::kEventTexts) {
    CHECK(mentions(page, "| `" + std::string(event.word) + " <"));
    CHECK(mentions(page, event.meaning));
  }
}

TEST_CASE("every command is on the reference page and in the fuzz dictionary") {
  const std::string page = commands_markdown();
  const std::string dictionary = fuzz_dictionary();
  for (const auto& command : commands::command_table()) {
    const std::string name(command.name);
    CHECK(mentions(page, "## " + name + "\n"));
    CHECK(mentions(dictionary, "\"" + name + "\""));
    if (command.access >= Access::produce) {
      CHECK(mentions(page, std::string(command.summary) + " Family: "));
    }
    for (const auto& reply : command.replies) {
      CHECK(mentions(page, "`" + std::string(reply.reply) + "`"));
    }
  }
}

TEST_CASE("the reference page names the family of a command") {
  const std::string page = commands_markdown();
  CHECK(mentions(page,
                 "Puts a job into the used tube; the body follows the line. Family: produce.\n"));
  CHECK(mentions(page, " Family: work.\n"));
  CHECK(mentions(page, " Family: inspect.\n"));
  CHECK(mentions(page, " Family: admin.\n"));
}

}  // namespace
}  // namespace tubed::docs
