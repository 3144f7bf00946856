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
  for (const auto& row : config::role_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("| `{}` | {} |", row.key, row.required ? "yes" : "no")));
    CHECK(mentions(page, row.doc));
  }
  for (const auto& row : config::options_table()) {
    CAPTURE(row.names());
    CHECK(mentions(page, fmt::format("| `{}` | {} |", row.names(), row.doc)));
  }
}

TEST_CASE("the reference page has the values of a directory and of a sync interval") {
  const auto page = settings_markdown();
  CHECK(mentions(page, "| `-b DIR` | The same as `--journal-directory`. |"));
  CHECK(mentions(page,
                 "| `journal.sync` | `--journal-sync` | `\"50ms\"` | always, never or 1ms to "
                 "1h | yes |"));
}

TEST_CASE("the reference page lists what should be the same on all nodes, and nothing else") {
  const auto page = settings_markdown();
  CHECK(mentions(page, "\n- `limits.job_bytes`\n"));
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    CHECK(mentions(page, fmt::format("\n- `{}`\n", row.key)) == row.same_on_all_nodes);
  }
}

TEST_CASE("a list has the values of its elements") {
  const auto page = settings_markdown();
  CHECK(mentions(page, "| `[\"produce\", \"work\"]` | array of produce, work, inspect, admin |"));
  CHECK(mentions(page, "| `[\"web-1\"]` | array of text |"));
  CHECK(mentions(page, "| `http.tls.key` | `--http-tls-key` | none | array of text | yes |"));
}

}  // namespace
}  // namespace tubed::docs
