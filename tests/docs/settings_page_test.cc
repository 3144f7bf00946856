#include "tools/docs/settings_page.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/docs/mentions.h"

namespace tubed::docs {
namespace {

TEST_CASE("the reference page has every row of every table") {
  const auto page = settings_markdown();
  CHECK(mentions(page, "tools/generate-docs"));
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("| `{}` | `{}`", row.key, row.flag())));
    CHECK(mentions(page, row.doc));
    if (row.short_flag) CHECK(mentions(page, fmt::format("| `-{} ", row.short_flag)));
  }
  for (const auto& row : config::listen_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("| `{}` |", row.key)));
    CHECK(mentions(page, row.doc));
  }
  for (const auto& row : config::options_table()) {
    CAPTURE(row.names());
    CHECK(mentions(page, fmt::format("| `{}` | {} |", row.names(), row.doc)));
  }
}

TEST_CASE("the reference page has the values of a directory and a sync") {
  const auto page = settings_markdown();
  CHECK(mentions(page, "| `-b DIR` | The same as `--journal-directory`. |"));
  CHECK(mentions(page,
                 "| `journal.sync` | `--journal-sync` | `\"50ms\"` | always, never or 1ms to "
                 "1h | yes |"));
}

}  // namespace
}  // namespace tubed::docs
