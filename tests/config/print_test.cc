#include "config/print.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

TEST_CASE("printed settings load back to the same") {
  CHECK(load(print_settings(Settings())).value() == Settings());
  for (const bool is_maximum : {false, true}) {
    Settings settings;
    for (const auto& row : config::settings_table()) {
      if (row.type.kind == config::Kind::text) {
        row.set(settings, std::string("\"a\\b\" = '# \xc3\xa4"));
      } else if (row.type.kind == config::Kind::address) {
        row.set(settings, std::string(is_maximum ? "[::1]:65535" : "unix:/a \"b\" \\d"));
      } else if (row.type.kind == config::Kind::list) {
        row.set(settings, std::vector<std::string>{"/a \"b\" \\c", "n\xc3\xa4me, with a comma"});
      } else if (row.type.kind == config::Kind::choice) {
        row.set(settings, static_cast<std::int64_t>(is_maximum ? row.type.choices.size() - 1 : 0));
      } else {
        row.set(settings, is_maximum ? row.type.maximum : row.type.minimum);
      }
    }
    settings.cluster.name = "A.b_c-9";
    settings.cluster.listen = parse_listen("[::]:1").value();
    settings.cluster.address = "[2001:db8::1]:2";
    settings.cluster.admin = parse_listen("unix:/admin \"b\" \\c").value();
    settings.cluster.insecure = ClusterInsecure::yes;
    settings.queue.job_bytes = is_maximum ? kMaxClusterJobBytes : 1;
    settings.listeners = {parse_listen("[::1]:0").value(), parse_listen("0.0.0.0").value(),
                          parse_listen("unix:/a \"b\" \\c").value()};
    settings.listeners[2].mode = 0600;
    settings.listeners[2].group = "queue";
    settings.listeners[2].auth = AuthMode::peer;
    settings.listeners[1].auth = AuthMode::mtls;
    settings.listeners[1].tls = {
        {"/a \"b\"", "/c, d"}, {"/e", "/f"}, "/clients \\", TlsVersion::v1_3};
    settings.listeners[0].role = "all \"of\" it";
    settings.http.auth = AuthMode::none;
    settings.http.role = "all \"of\" it";
    settings.http.hosts = {"queue.example", "a_b-2"};
    settings.http.color = is_maximum ? "#C0FFEE" : "orange";
    settings.roles.resize(2);
    settings.roles[0].role.name = "all \"of\" it";
    settings.roles[1] = {{"worker", true, true, true, true, {"mail.*", "a[\"!]b"}, {1, 2, 3, 4, 5}},
                         {"one", "two"},
                         {"CN=a\\,b,O=c", "DNS:d"},
                         {"1000", "www-data"},
                         {"mail"}};
    const auto printed = print_settings(settings);
    CAPTURE(printed);
    const auto loaded = load(printed);
    REQUIRE(loaded.ok());
    CHECK(loaded.value() == settings);
    CHECK(print_settings(loaded.value()) == printed);
  }
}

TEST_CASE("a sync is printed as its word, and loads back") {
  for (const auto& [sync, line] :
       {std::pair{kSyncAlways, "sync = \"always\"\n"}, std::pair{kSyncNever, "sync = \"never\"\n"},
        std::pair{Duration(std::chrono::milliseconds(5)), "sync = \"5ms\"\n"}}) {
    Settings settings;
    settings.journal_sync = sync;
    const auto printed = print_settings(settings);
    CHECK(printed.find(line) != std::string::npos);
    CHECK(load(printed).value() == settings);
  }
}

TEST_CASE("printed settings contain every row") {
  const auto lines = lines_of(print_settings(Settings()));
  for (const auto& row : config::settings_table()) {
    const auto value = row.default_value();
    const auto line = fmt::format("{}{} = {}", row.can_be_written(value) ? "" : "#", row.name(),
                                  to_toml(row.type, value));
    CAPTURE(line);
    CHECK(std::ranges::find(lines, line) != lines.end());
  }
}

}  // namespace
}  // namespace tubed::config_test
