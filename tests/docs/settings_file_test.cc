#include "tools/docs/settings_file.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/config/loading.h"

namespace tubed::docs {
namespace {

using config_test::lines_of;
using config_test::load;

// True for a key of [http] whose default cannot be written as a value.
bool is_refused_in_http(const std::string& line) {
  return std::ranges::any_of(config::settings_table(), [&](const config::Setting& row) {
    const auto value = row.default_value();
    return row.section() == "http" && !row.can_be_written(value) &&
           line == fmt::format("#{} = {}", row.name(), to_toml(row.type, value));
  });
}

TEST_CASE("the default file loads to the defaults") {
  CHECK(load(default_config()).value() == Settings());
}

// A durable journal, a TCP and a unix socket, and the defaults.
Settings service_settings() {
  Settings expected;
  expected.journal_directory = "/var/lib/tubed";
  expected.journal_sync = kSyncAlways;
  expected.listeners.push_back(parse_listen("unix:/run/tubed/tubed.sock").value());
  expected.listeners.back().mode = 0660;
  expected.listeners.back().group = "tubed";
  return expected;
}

const std::vector<std::string> kServiceLines = {"directory = \"/var/lib/tubed\"",
                                                "sync = \"always\"",
                                                "address = \"127.0.0.1:11300\"",
                                                "address = \"unix:/run/tubed/tubed.sock\"",
                                                "mode = \"0660\"",
                                                "group = \"tubed\""};

TEST_CASE("the packaged file has the settings of the service") {
  const auto loaded = load(packaged_config());
  REQUIRE(loaded.ok());
  CHECK(loaded.value() == service_settings());
  // Each setting occurs once, and only these are not commented out.
  std::size_t commented = 0;
  std::vector<std::string> active;
  for (const auto& line : lines_of(packaged_config())) {
    const bool is_key = line.find(" = ") != std::string::npos && !line.starts_with("# ");
    if (is_key && line[0] == '#') ++commented;
    if (is_key && line[0] != '#') active.push_back(line);
  }
  CHECK(commented + 2 == config::settings_table().size());
  CHECK(active == kServiceLines);
}

TEST_CASE("the conffile has the settings of the service, and shows the defaults") {
  const auto loaded = load(conffile());
  REQUIRE(loaded.ok());
  CHECK(loaded.value() == service_settings());
  const auto lines = lines_of(conffile());
  CHECK(lines.size() >= 30);
  CHECK(lines.size() <= 37);
  // Each commented key alone, under its heading, loads as a default.
  std::string heading;
  std::string uncommented;
  std::vector<std::string> active;
  std::size_t commented = 0;
  for (const auto& line : lines) {
    CHECK(line.size() <= 100);
    if (line.starts_with("[")) heading = line;
    const bool is_key = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    if (!line.empty() && line[0] != '#' && line[0] != '[')
      active.push_back(line.substr(0, line.find_last_not_of(' ', line.find(" #")) + 1));
    uncommented += (is_key ? line.substr(1) : line) + "\n";
    if (!is_key) continue;
    ++commented;
    CAPTURE(line);
    const auto alone = load(fmt::format("{}\n{}\n", heading, line.substr(1)));
    REQUIRE(alone.ok());
    CHECK(alone.value() == Settings());
  }
  CHECK(active == kServiceLines);
  CHECK(commented == 8);
  CHECK(load(uncommented).value() == service_settings());
  for (const auto* word : {"/etc/tubed/tubed.d/", "/usr/share/doc/tubed/tubed.toml"}) {
    CHECK(conffile().find(word) != std::string::npos);
  }
}

TEST_CASE("the commented keys of the default file are the defaults") {
  std::string uncommented;
  std::size_t keys = 0;
  for (const auto& line : lines_of(default_config())) {
    CHECK(line.size() <= 100);
    const bool is_key = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    keys += is_key && line[1] != '[' ? 1 : 0;
    if (is_refused_in_http(line)) continue;
    uncommented += (is_key ? line.substr(1) : line) + "\n";
  }
  CAPTURE(uncommented);
  // Each setting once, the default listener's address, and the keys of the example of a unix
  // socket.
  CHECK(keys == config::settings_table().size() + 1 + 3);
  const auto loaded = load(uncommented);
  REQUIRE(loaded.ok());
  auto settings = loaded.value();
  REQUIRE(settings.listeners.size() == 2);
  CHECK(settings.listeners[1].kind == Listen::Kind::unix_socket);
  settings.listeners.pop_back();
  CHECK(settings == Settings());
}

TEST_CASE("the example of TLS is in both files, and loads a listener and two roles") {
  std::string commented;
  for (const auto& line : lines_of(tls_example())) {
    if (!commented.empty() || !line.empty()) commented += (line.empty() ? "#" : "# " + line) + '\n';
  }
  CHECK(default_config().find(commented) != std::string::npos);
  CHECK(packaged_config().find(commented) != std::string::npos);
  CHECK(load("[auth]\ntokens = \"/etc/tubed/tokens\"\n" + tls_example()).ok());
  const auto settings = load("auth.tokens = \"/etc/tubed/tokens\"\n" + tls_example()).value();
  REQUIRE(settings.listeners.size() == 1);
  CHECK(settings.listeners[0].auth == AuthMode::token);
  CHECK(settings.listeners[0].tls.enabled());
  REQUIRE(settings.roles.size() == 2);
  CHECK(settings.roles[0].role.produce);
  CHECK(settings.roles[1].role.work);
}

TEST_CASE("both files explain every key of a listener and of a role") {
  for (const auto& file : {default_config(), packaged_config()}) {
    for (const auto& row : config::listen_table()) {
      CAPTURE(row.key);
      CHECK(file.find(std::string("\n# ") + std::string(row.key)) != std::string::npos);
    }
    for (const auto& row : config::role_table()) {
      CAPTURE(row.key);
      CHECK(file.find(std::string("\n# ") + std::string(row.key)) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tubed::docs
