// Tests every row, from the file and from its flag. The cases are generated from the table: a new
// row needs no new line here.
#include "config/table.h"

#include <algorithm>
#include <array>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

using config::Kind;
using config::Setting;
using config::settings_table;
using config::Value;

// The three files of cluster.tls need each other.
constexpr auto kNodeTls = std::to_array<std::string_view>({"tls.certificate", "tls.key", "tls.ca"});

bool is_node_tls(const Setting& row) {
  return row.key.starts_with("cluster.tls.");
}

// The rest of http.tls needs a certificate.
bool needs_certificate(const Setting& row) {
  return row.key.starts_with("http.tls.") && row.key != "http.tls.certificate";
}

// The settings that a value other than the default needs, first in its section, then in another.
std::string needed_by(const Setting& row) {
  if (needs_certificate(row)) return "tls.certificate = [\"a\", \"b\"]\n";
  if (row.section() != "cluster") return "";
  std::string files;
  for (const std::string_view name : kNodeTls) {
    if (is_node_tls(row) && row.name() != name) files += fmt::format("{} = \"/f\"\n", name);
  }
  return fmt::format("{}{}{}[journal]\ndirectory = \"/j\"\n", files,
                     row.name() == "name" ? "" : "name = \"a\"\n",
                     row.name() == "listen" ? "" : "listen = \"127.0.0.1\"\n");
}

std::string assignment(const Setting& row, std::string_view toml) {
  const bool is_default = toml == to_toml(row.type, row.default_value());
  return (row.section().empty() ? fmt::format("{} = {}\n", row.name(), toml)
                                : fmt::format("[{}]\n{} = {}\n", row.section(), row.name(), toml)) +
         (is_default ? "" : needed_by(row));
}

// The same for the flag of the row, the first of `flags`.
std::vector<std::string> with_needed_flags(const Setting& row, const std::string& text,
                                           std::vector<std::string> flags) {
  if (text == to_text(row.type, row.default_value())) return flags;
  const auto need = [&](const std::string& flag, const std::string& argument) {
    if (flag != row.flag()) flags.insert(flags.end(), {flag, argument});
  };
  if (needs_certificate(row)) need("--http-tls-certificate", "a,b");
  if (row.section() == "cluster") {
    need("--cluster-name", "a");
    need("--cluster-listen", "127.0.0.1");
    need("--journal-directory", "/j");
    for (const auto* flag : {"--cluster-tls-certificate", "--cluster-tls-key", "--cluster-tls-ca"})
      if (is_node_tls(row)) need(flag, "/f");
  }
  return flags;
}

std::size_t line_of(const Setting& row) {
  return row.section().empty() ? 1 : 2;
}

bool is_number(const Setting& row) {
  const auto kind = row.type.kind;
  return kind == Kind::count || kind == Kind::bytes || kind == Kind::duration || kind == Kind::sync;
}

// The smallest step that the row's values can be written in.
std::int64_t step_of(const Setting& row) {
  const bool is_time = row.type.kind == Kind::duration || row.type.kind == Kind::sync;
  return is_time ? 1'000'000 : 1;
}

std::vector<Value> good_values(const Setting& row) {
  std::vector<Value> values;
  if (row.can_be_written(row.default_value())) values.push_back(row.default_value());
  if (is_number(row)) {
    values.insert(values.end(), {row.type.minimum, row.type.maximum,
                                 row.type.minimum + step_of(row), row.type.maximum - step_of(row)});
  }
  if (row.type.kind == Kind::sync) {
    values.insert(values.end(),
                  {std::int64_t{kSyncAlways.count()}, std::int64_t{kSyncNever.count()}});
  }
  if (row.type.kind == Kind::list) {
    values.emplace_back(std::vector<std::string>{"/a \"quoted\" \\", "n\xc3\xa4me"});
  }
  for (std::size_t i = 0; i < row.type.choices.size(); ++i) {
    values.emplace_back(static_cast<std::int64_t>(i));
  }
  if (row.type.kind == Kind::text) values.emplace_back(std::string("a \"quoted\" \\ n\xc3\xa4me"));
  if (row.type.kind == Kind::address) {
    values.insert(values.end(), {std::string("[::1]:0"), std::string("unix:/a \"b\" \\c"),
                                 std::string("10.0.0.1:65535")});
  }
  // Within the row's bounds, but refused with the default of another row (access_test.cc).
  if (row.key == "journal.max_bytes") std::erase(values, Value(row.type.minimum + 1));
  if (row.key == "http.auth") values.resize(1);
  if (row.key == "http.hosts") values[1] = std::vector<std::string>{"queue.example", "a_b-2"};
  if (row.key == "http.role") values.clear();
  if (row.key == "http.title") values.emplace_back(std::string(64, 't'));
  if (row.key == "http.color")
    values = {std::string(), std::string("teal"), std::string("#00fFa9"), std::string("gray")};
  // cluster_test.cc has the texts that they allow.
  if (row.key == "cluster.name") values[1] = std::string("A.b_c-9");
  if (row.key == "cluster.listen" || row.key == "cluster.address") {
    values.resize(1);
    values.insert(values.end(), {std::string("[::1]:1"), std::string("127.0.0.2:65535")});
  }
  if (row.key == "cluster.admin") {
    values.resize(1);
    values.emplace_back(std::string("unix:/a \"b\" \\c"));
  }
  return values;
}

struct BadValue {
  std::string toml;
  std::string text;
  std::string reason;
};

std::vector<BadValue> bad_values(const Setting& row) {
  std::vector<BadValue> values;
  if (is_number(row)) {
    // A sync of 0 is another word for always.
    const auto less = row.type.kind == Kind::sync ? row.type.minimum + step_of(row) : step_of(row);
    const auto below = Value(row.type.minimum - less);
    const auto above = Value(row.type.maximum + step_of(row));
    values.push_back(
        {to_toml(row.type, below), to_text(row.type, below), "is below the minimum of "});
    values.push_back(
        {to_toml(row.type, above), to_text(row.type, above), "is above the maximum of "});
    values.push_back({"\"12parsecs\"", "12parsecs", ""});
    values.push_back({"1.5", "1.5", ""});
    values.push_back({"\"\"", "", ""});
    values.push_back(
        {"9223372036854775807", "99999999999999999999999", "is above the maximum of "});
    values.push_back({"-9223372036854775808", "-99999999999999999999", "is below the minimum of "});
  }
  if (row.type.kind == Kind::sync) {
    values.push_back({"\"Never\"", "Never", "is not \"always\", \"never\" or a duration"});
    values.push_back({"\"always \"", "always ", "is not \"always\", \"never\" or a duration"});
  }
  if (row.type.kind == Kind::choice) {
    values.push_back({"\"\"", "", "is not one of "});
    values.push_back({"\"nonsense\"", "nonsense", "\"nonsense\" is not one of "});
  }
  if (row.type.kind == Kind::truth) {
    values.push_back({"\"true\"", "yes", ""});
    values.push_back({"1", "", ""});
  }
  if (row.type.kind == Kind::address) {
    if (row.type.may_be_named) {
      values.push_back(
          {"\"a_b:1\"", "a_b:1", "is neither a numeric address nor the name of a host"});
    } else {
      values.push_back({"\"localhost:1\"", "localhost:1", "is not a numeric address"});
    }
    values.push_back({"\"127.0.0.1:65536\"", "127.0.0.1:65536", "is not a port"});
    values.push_back({"\"unix:\"", "unix:", "has no path"});
  }
  if (row.type.kind == Kind::list) {
    values.push_back({"[\"a\", \"b\\nc\"]", "a,b\nc", "control characters"});
    values.push_back({"[\"a\", \"\"]", "a,,b", "\"\" is empty"});
    values.push_back({"\"\"", ",", "\"\" is empty"});
    if (!row.type.may_be_empty) values.push_back({"[]", "", "is empty; for the default"});
  }
  if (row.type.kind == Kind::text) {
    if (!row.type.may_be_empty) values.push_back({"\"\"", "", "is empty; for the default"});
    values.push_back({"\"a\\nb\"", "a\nb", "control characters"});
    values.push_back({"\"a\\u0000b\"", "\xff", "control characters"});
  }
  return values;
}

TEST_CASE("a row accepts its default, both bounds and each of its words") {
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    for (const auto& value : good_values(row)) {
      const auto toml = to_toml(row.type, value);
      const auto text = to_text(row.type, value);
      CAPTURE(toml);
      auto from_file = load(assignment(row, toml));
      REQUIRE_MESSAGE(from_file.ok(), load_error(assignment(row, toml)));
      CHECK(row.get(*from_file) == value);

      if (text.empty() && !row.takes_empty_flag) continue;
      const auto line = accept(with_needed_flags(row, text, {row.flag(), text}));
      REQUIRE(line.warnings.empty());
      CHECK(row.get(load("", line).value()) == value);
      const auto joined = accept(with_needed_flags(row, text, {row.flag() + "=" + text}));
      CHECK(row.get(load("", joined).value()) == value);
    }
  }
}

TEST_CASE("a row refuses values outside of its bounds, with file, line, key or flag, and reason") {
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    for (const auto& bad : bad_values(row)) {
      CAPTURE(bad.toml);
      const auto error = load_error(assignment(row, bad.toml));
      CHECK(error.starts_with(fmt::format("tubed.toml:{}: {}: ", line_of(row), row.key)));
      CHECK(error.find(bad.reason) != std::string::npos);
      CHECK(error.find('\n') == std::string::npos);

      const auto exit = refuse({row.flag(), bad.text});
      CHECK(exit.code == 78);
      CHECK(exit.text.find(row.flag() + ": ") != std::string::npos);
      CHECK(exit.text.find(bad.reason) != std::string::npos);
      CHECK(exit.text.find('\n') == exit.text.size() - 1);
    }
  }
}

TEST_CASE("a row refuses a value of another type") {
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    for (const std::string_view toml : {"true", "1.5", "[1]", "{a = 1}", "2024-01-01"}) {
      if (row.type.kind == Kind::truth && toml == "true") continue;
      const auto error = load_error(assignment(row, toml));
      CHECK(error.starts_with(fmt::format("tubed.toml:{}: {}: expected ", line_of(row), row.key)));
      CHECK(error.find(", not ") != std::string::npos);
    }
    const bool is_list = row.type.kind == Kind::list;
    if (is_list) {
      CHECK(load_error(assignment(row, "[\"a\", 7]"))
                .ends_with("expected an array of strings, not an integer"));
    }
    const bool is_count = row.type.kind == Kind::count;
    const auto error = load_error(assignment(row, is_count ? "\"7\"" : "7"));
    if (is_count) CHECK(error.ends_with("expected a whole number, not a string"));
    if (!is_number(row)) CHECK(error.ends_with("not an integer"));
  }
}

TEST_CASE("setting one row changes no other row") {
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    for (const auto& value : good_values(row)) {
      Settings settings;
      row.set(settings, value);
      for (const auto& other : settings_table()) {
        if (other.key != row.key) CHECK(other.get(settings) == other.default_value());
      }
    }
  }
}

TEST_CASE("a row's default is within its bounds and its doc is a sentence") {
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    CHECK(value_from_text(row.type, to_text(row.type, row.default_value())).ok() ==
          row.can_be_written(row.default_value()));
    CHECK(row.doc.ends_with('.'));
    CHECK(row.first_sentence().ends_with('.'));
  }
}

TEST_CASE("defaults are the documented ones, and the queue's are the engine's") {
  const Settings settings;
  CHECK(settings.user.empty());
  CHECK(settings.journal_directory.empty());
  CHECK(settings.journal_sync == std::chrono::milliseconds(50));
  CHECK(settings.journal_segment_bytes == 10U << 20);
  CHECK(settings.journal_max_bytes == 0);
  CHECK(settings.connections == 10'000);
  CHECK(settings.line_bytes == 224);
  CHECK(settings.output_bytes == 1U << 20);
  CHECK(settings.idle_timeout == Duration::zero());
  CHECK(settings.stall_timeout == std::chrono::seconds(60));
  CHECK(settings.shutdown_timeout == std::chrono::seconds(5));
  CHECK(settings.tcp_keepalive == std::chrono::seconds(60));
  CHECK(settings.tcp_backlog == 4096);
  CHECK(settings.log_level == LogLevel::info);
  CHECK(settings.log_format == LogFormat::automatic);
  CHECK(settings.listeners == std::vector<Listen>(1));
  CHECK(settings.queue.job_bytes == Limits().job_bytes);
  CHECK(settings.queue.job_memory_bytes == Limits().job_memory_bytes);
  CHECK(settings.queue.tubes == Limits().tubes);
  CHECK(settings.queue.watches == Limits().watches);
  CHECK(settings.queue.work_per_turn == Limits().work_per_turn);
}

TEST_CASE(
    "only the user, the journal's files, the backlog, the listeners and the node need a restart") {
  constexpr auto kFixed = std::to_array<std::string_view>(
      {"user", "pid_file", "journal.directory", "journal.segment_size", "http.listen",
       "tcp.backlog", "cluster.name", "cluster.listen", "cluster.address", "cluster.admin",
       "cluster.clients", "cluster.election_timeout", "cluster.insecure"});
  for (const auto& row : settings_table()) {
    CAPTURE(row.key);
    CHECK(row.reloadable == (std::ranges::count(kFixed, row.key) == 0));
  }
}

TEST_CASE("words and enumerators are in the same order") {
  CHECK(load("log.level = \"error\"").value().log_level == LogLevel::error);
  CHECK(load("log.level = \"warning\"").value().log_level == LogLevel::warning);
  CHECK(load("log.level = \"debug\"").value().log_level == LogLevel::debug);
  CHECK(load("log.format = \"auto\"").value().log_format == LogFormat::automatic);
  CHECK(load("log.format = \"text\"").value().log_format == LogFormat::text);
  CHECK(load("log.format = \"journald\"").value().log_format == LogFormat::journald);
  CHECK(load("log.format = \"json\"").value().log_format == LogFormat::json);
  CHECK(load("drain.exit = \"never\"").value().drain_exit == DrainExit::never);
  CHECK(load("drain.exit = \"when-idle\"").value().drain_exit == DrainExit::when_idle);
  CHECK(load("drain.exit = \"when-empty\"").value().drain_exit == DrainExit::when_empty);
  CHECK(load("drain.reserves = \"refuse\"").value().drain_reserves == DrainReserves::refuse);
  CHECK(load("drain.reserves = \"serve\"").value().drain_reserves == DrainReserves::serve);
}

}  // namespace
}  // namespace tubed::config_test
