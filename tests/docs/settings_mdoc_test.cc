#include "tools/docs/settings_mdoc.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/docs/mentions.h"
#include "tools/docs/mdoc.h"

namespace tubed::docs {
namespace {

TEST_CASE("tubed.toml(5) has every setting with its prose, bounds and default") {
  const auto page = settings_man_page();
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("\n.It Ic {} No = Ar {}\n{}", row.name(),
                                     config::placeholder(row.type), mdoc_text(row.doc))));
    CHECK(mentions(page, fmt::format("\n.Fl {}", row.flag().substr(1))));
  }
  for (const auto& row : config::listen_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("\n.It Ic {} No = Ar ", row.key)));
    CHECK(mentions(page, mdoc_text(row.doc)));
  }
  for (const auto& row : config::role_table()) {
    CAPTURE(row.key);
    CHECK(mentions(
        page, fmt::format("\n.It Ic {} No = Ar {}\n", row.key, config::placeholder(row.type))));
    CHECK(mentions(page, mdoc_text(row.doc)));
  }
  CHECK(mentions(page, "\nExample: [\"produce\", \"work\"].\n"));
  CHECK(mentions(page, "\nConnections: 1 to 1000000000.\nExample: 100.\n"));
  CHECK(mentions(page,
                 "\nBytes: 4KiB to 1GiB.\nThe default is \"10MiB\".\nA change needs a restart.\n"));
  CHECK(mentions(page, "\nValues: never, when-idle, when-empty.\nThe default is \"never\".\n"));
}

TEST_CASE("tubed(8) has the flags of both tables") {
  const auto list = options_mdoc();
  for (const auto& row : config::options_table()) {
    CAPTURE(row.names());
    if (row.short_flag != '\0') CHECK(mentions(list, fmt::format("\n.It Fl {}", row.short_flag)));
    if (!row.long_flag.empty())
      CHECK(mentions(list, fmt::format("Fl {}", row.long_flag.substr(1))));
    CHECK(mentions(list, mdoc_text(row.doc)));
  }
  CHECK(mentions(list, "\n.It Fl l , Fl -listen Ar ADDR\n"));
  CHECK(mentions(list, "\n.It Fl b , Fl -journal-directory Ar DIR\n"));
}

}  // namespace
}  // namespace tubed::docs
