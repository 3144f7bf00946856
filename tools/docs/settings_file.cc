// The two complete files are written from the same function, commented_config(), with different
// settings: a key whose value is the default is commented out, any other key is active. So the
// service's file states exactly how the service differs from the defaults. The conffile has the
// same settings in short. A test loads all three.
#include "tools/docs/settings_file.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "config/print.h"
#include "config/table.h"

namespace tubed::docs {
namespace {

constexpr std::size_t kCommentWidth = 80;

// `text` as comment lines, broken at spaces.
std::string comment(std::string_view text) {
  std::string result;
  std::string line;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    if (!line.empty() && line.size() + word.size() + 3 > kCommentWidth) {
      result += fmt::format("# {}\n", line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return fmt::format("{}# {}\n", result, line);
}

// `toml` with a '#' before each line that is not empty.
std::string commented_out(std::string_view toml) {
  std::string result;
  while (!toml.empty()) {
    const auto line = toml.substr(0, toml.find('\n') + 1);
    if (line != "\n") result += '#';
    result += line;
    toml.remove_prefix(line.size());
  }
  return result;
}

// `toml` as comment lines, without the empty line at its beginning.
std::string in_comment(std::string_view toml) {
  std::string result;
  toml.remove_prefix(toml.find_first_not_of('\n'));
  while (!toml.empty()) {
    const auto line = toml.substr(0, toml.find('\n') + 1);
    result += fmt::format("#{}{}", line == "\n" ? "" : " ", line);
    toml.remove_prefix(line.size());
  }
  return result;
}

// A unix socket with what only a unix socket has, made of the examples of the rows.
Listen example_listener() {
  Listen listen;
  for (const auto& row : config::listen_table()) {
    if (!row.required && !row.unix_only) continue;
    const auto value = config::value_from_text(row.type, row.example);
    TUBED_ASSERT(value);
    row.set(listen, value.value());
  }
  return listen;
}

// The packaged file has hints that make sense only for the service.
enum class Audience : std::uint8_t { user, service };

// The documentation of the row, the service's hint, and the bounds in parentheses.
std::string setting_comment(const config::Setting& row, Audience audience) {
  auto notes = config::bounds(row.type);
  if (!row.reloadable) {
    notes += fmt::format("{}a change needs a restart", notes.empty() ? "" : "; ");
  }
  auto result = comment(row.doc);
  if (audience == Audience::service && !row.service_hint.empty()) {
    result += comment(row.service_hint);
  }
  if (!notes.empty()) result += comment(fmt::format("({})", notes));
  return result;
}

// All keys of a listener in one comment, since the example table has only their values.
std::string listen_comment() {
  auto result = comment(
      "The addresses that the server listens on. Each is one [[listen]] table. A change of an "
      "address, a mode or a group needs a restart.");
  for (const auto& row : config::listen_table()) {
    result += comment(
        fmt::format("{}{}: {}", row.key, row.unix_only ? " (only for unix:)" : "", row.doc));
  }
  return result;
}

// All keys of a role, and an example with a listener whose clients have roles.
std::string role_comment() {
  auto result =
      comment("Roles: what clients may do, and their limits. Each is one [[role]] table.");
  for (const auto& row : config::role_table()) {
    result += comment(fmt::format("{}: {}", row.key, row.doc));
  }
  result += comment(
      "For example, TLS for a program that puts jobs and for its workers; tokens in [auth] has to "
      "name a file:");
  return result + in_comment(tls_example());
}

// All keys of a policy, with an example.
std::string policy_comment() {
  auto result = comment(
      "Policies: retries, time to live and bounds of the tubes whose names match a pattern. Each "
      "is one "
      "[[policy]] table; the first that matches a name counts.");
  for (const auto& row : policy_keys()) {
    result += comment(fmt::format("{}: {}", row.name, row.meaning));
  }
  return result + comment("For example:") +
         "# [[policy]]\n# tubes = \"mail.*\"\n"
         "# max-attempts = 5\n# dead = \"mail.dead\"\n";
}

// Every key with its comment. A key that has its default value is commented out.
std::string commented_config(const Settings& settings, Audience audience,
                             std::string_view introduction) {
  const Settings defaults;
  auto result = comment(introduction);
  result += comment(
      "Sizes are in bytes or like \"64KiB\", \"1MiB\", \"2GiB\"; times in seconds or like "
      "\"50ms\", "
      "\"30s\", \"5m\", \"2h\", \"1d\".");
  std::string_view section;
  for (const auto& row : config::settings_table()) {
    if (row.section() != section) {
      section = row.section();
      result += fmt::format("\n[{}]\n", section);
    }
    const auto value = row.get(settings);
    result += fmt::format("\n{}{}{} = {}\n", setting_comment(row, audience),
                          value == row.default_value() ? "#" : "", row.name(),
                          config::to_toml(row.type, value));
  }
  result += fmt::format("\n{}\n{}", policy_comment(), role_comment());
  result += fmt::format("\n{}", listen_comment());
  const bool is_default = settings.listeners == defaults.listeners;
  for (const auto& listen : settings.listeners) {
    result += is_default ? commented_out(print_listener(listen)) : print_listener(listen);
  }
  return result;
}

}  // namespace

std::string default_config() {
  return commented_config(
             Settings(), Audience::user,
             "The settings of tubed. Settings that are commented out show their default.") +
         commented_out(print_listener(example_listener()));
}

std::string tls_example() {
  Listen listen;
  listen.host = "0.0.0.0";
  listen.port = 11301;
  listen.auth = AuthMode::token;
  listen.tls.certificates = {"/etc/tubed/tls/certificate.pem"};
  listen.tls.keys = {"/etc/tubed/tls/key.pem"};
  RoleSettings web;
  web.role.name = "web";
  web.role.produce = true;
  web.role.tubes = {"mail.*"};
  web.role.limits.job_bytes = 4096;
  web.tokens = {"web-1"};
  RoleSettings worker;
  worker.role.name = "worker";
  worker.role.work = true;
  worker.role.inspect = true;
  worker.role.tubes = {"mail.*"};
  worker.tokens = {"worker-1", "worker-2"};
  return print_listener(listen) + print_role(web) + print_role(worker);
}

namespace {

Settings service_settings() {
  Settings settings;
  settings.journal_directory = "/var/lib/tubed";
  settings.journal_sync = kSyncAlways;
  settings.listeners.push_back(example_listener());
  return settings;
}

// Where the remarks of the conffile begin.
constexpr std::size_t kRemarkColumn = 30;

// A key of the conffile.
struct ConffileKey {
  std::string_view key;
  std::string_view remark;  // after the value
};

// The settings that operators change most, in the order of the table, by sections.
constexpr auto kConffileKeys = std::to_array<ConffileKey>({
    {"journal.directory", "empty: jobs are kept in memory only"},
    {"journal.sync", "or an interval such as \"50ms\", or \"never\""},
    {"journal.max_bytes", "disk space; 0: no limit"},
    {"limits.connections", "clients at once"},
    {"limits.job_bytes", "the largest body of a job"},
    {"limits.job_memory", "memory of all jobs"},
    {"limits.tubes", "tubes at once"},
    {"http.api", "the console and its API: \"read\" or \"full\""},
    {"http.auth", "\"token\", \"mtls\" or \"peer\""},
    {"auth.tokens", "the file of the clients' tokens"},
});

// The comment after the heading of a section, or nothing.
std::string_view section_remark(std::string_view section) {
  if (section == "http")
    return "# For metrics, health checks and the console: systemctl enable tubed-http.socket\n";
  if (section == "auth") return "# Tokens, TLS and roles: /usr/share/doc/tubed/docs/tls.md\n";
  return "";
}

}  // namespace

std::string packaged_config() {
  return commented_config(service_settings(), Audience::service,
                          "The settings of the service tubed, with all keys. Settings that are "
                          "commented out show their default. To change a setting, put it into a "
                          "file /etc/tubed/tubed.d/NAME.toml under the heading of its table, and "
                          "run \"systemctl reload tubed\". The service uses the sockets of "
                          "tubed.socket and tubed-local.socket in place of the [[listen]] tables "
                          "below: see tubed(8), ADDRESSES.");
}

std::string conffile() {
  const Settings settings = service_settings();
  std::string result =
      comment(
          "Settings of the service tubed. Keys that are commented out show their default. For all "
          "keys: man tubed.toml, /usr/share/doc/tubed/tubed.toml.") +
      "#\n" +
      comment(
          "Leave this file as it is, and put your settings into /etc/tubed/tubed.d/NAME.toml. "
          "These files are read after this file, in the order of their names; the last value of a "
          "key takes effect, and [[listen]], [[role]] and [[policy]] add up. Then: systemctl "
          "reload tubed");
  std::string_view section;
  const auto rows = config::settings_table();
  for (const auto& [key, remark] : kConffileKeys) {
    const auto& row = *std::ranges::find(rows, key, &config::Setting::key);
    if (row.section() != section) {
      section = row.section();
      result += fmt::format("\n[{}]\n{}", section, section_remark(section));
    }
    const auto value = row.get(settings);
    const auto line = fmt::format("{}{} = {}", value == row.default_value() ? "#" : "", row.name(),
                                  config::to_toml(row.type, value));
    result += fmt::format("{:<{}}# {}\n", line, kRemarkColumn, remark);
  }
  result += "\n# The sockets of systemd have the same addresses: tubed(8), ADDRESSES.";
  for (const auto& listen : settings.listeners) result += print_listener(listen);
  return result;
}

}  // namespace tubed::docs
