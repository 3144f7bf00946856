// The page has a table for each section of the settings, one each for the keys of [[listen]],
// [[role]] and [[policy]], and one for the other flags, beanstalkd's separately. Text from the rows
// is used as it is, with bars escaped.
#include "tools/docs/settings_page.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "config/drop_ins.h"
#include "config/table.h"

namespace tubed::docs {
namespace {

using config::Setting;

// `text` as a cell of a table: a bar is escaped, as it would end the cell.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

// The allowed values: the bounds of a number, the words of a choice, or "text"; of a list, those
// of its elements.
std::string values(const config::Type& type) {
  if (type.kind == config::Kind::address) return "address";
  const auto bounds = config::bounds(type);
  const auto one = bounds.empty() ? "text" : bounds;
  return type.kind == config::Kind::list ? fmt::format("array of {}", one) : one;
}

std::string flags(const Setting& row) {
  return row.short_flag ? fmt::format("`{}`, `-{}`", row.flag(), row.short_flag)
                        : fmt::format("`{}`", row.flag());
}

std::string default_of(const Setting& row) {
  const auto value = row.default_value();
  if (!row.can_be_written(value)) return "none";
  return fmt::format("`{}`", config::to_toml(row.type, value));
}

// One table; `section` is empty for the keys outside of all sections.
std::string settings_section(std::string_view section) {
  auto result = section.empty() ? std::string("\n## Outside of all sections\n")
                                : fmt::format("\n## [{}]\n", section);
  result += "\n| key | flag | default | values | reload | meaning |\n|---|---|---|---|---|---|\n";
  for (const auto& row : config::settings_table()) {
    if (row.section() != section) continue;
    result +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", row.key, flags(row), default_of(row),
                    cell(values(row.type)), row.reloadable ? "yes" : "no", cell(row.doc));
  }
  return result;
}

// The keys of [[listen]] or [[role]].
template <class Rows>
std::string element_keys(const Rows& rows) {
  std::string result = "| key | required | example | values | meaning |\n|---|---|---|---|---|\n";
  for (const auto& row : rows) {
    const auto example = config::value_from_text(row.type, row.example);
    TUBED_ASSERT(example);
    result +=
        fmt::format("| `{}` | {} | `{}` | {} | {}{} |\n", row.key, row.required ? "yes" : "no",
                    config::to_toml(row.type, example.value()), cell(values(row.type)),
                    row.unix_only ? "Only for `unix:`. " : "", cell(row.doc));
  }
  return result;
}

std::string listen_section() {
  return "\n## [[listen]]\n\nOne table for each address. Without such a table, tubed listens on "
         "`127.0.0.1:11300`. A change of an address, a mode or a group needs a restart; changes of "
         "other keys, and of the contents of their files, take effect when the file is reloaded. "
         "The keys of `tls` may also be written as one table, "
         "`tls = { certificate = \"…\", key = \"…\" }` ([TLS](../tls.md)).\n\n" +
         element_keys(config::listen_table());
}

std::string role_section() {
  return "\n## [[role]]\n\nOne table for each role: the rights of its clients, their tokens or "
         "names, and their limits, in addition to the server's. A client has one role. A change "
         "takes effect when the file is reloaded, also for connected clients "
         "([security](../security.md)).\n\n" +
         element_keys(config::role_table());
}

std::string policy_section() {
  std::string result =
      "\n## [[policy]]\n\nOne table for the tubes whose names match the shell pattern `tubes`, "
      "such as `mail.*`. The first table that matches a name is its policy; a value that a client "
      "sets by `tube-policy` takes precedence ([policies](../policies.md)). A change takes effect "
      "when the file is reloaded.\n\n"
      "| key | default | values | meaning |\n|---|---|---|---|\n"
      "| `tubes` | required | pattern | The tubes that have the policy. |\n";
  for (const auto& row : policy_keys()) {
    result += fmt::format("| `{}` | `{}` | {} | {} |\n", row.name, row.default_value,
                          cell(row.form), cell(row.meaning));
  }
  return result;
}

std::string options_section(std::string_view title, bool of_beanstalkd) {
  auto result = fmt::format("\n## {}\n\n| flag | meaning |\n|---|---|\n", title);
  for (const auto& row : config::options_table()) {
    if (row.of_beanstalkd != of_beanstalkd) continue;
    result += fmt::format("| `{}` | {} |\n", row.names(), cell(row.doc));
  }
  if (!of_beanstalkd) return result;
  for (const auto& row : config::settings_table()) {
    if (!row.short_flag) continue;
    result += fmt::format("| `-{} {}` | The same as `{}`. |\n", row.short_flag,
                          config::placeholder(row.type), row.flag());
  }
  return result;
}

std::string files_section() {
  return fmt::format(
      "\n## Files\n\n"
      "After the file of `--config`, the server reads its drop-ins: the files whose names end in "
      "`.toml` in the directory with the name of the file and `.d` for `.toml`, such as "
      "`/etc/tubed/tubed.d/50-limits.toml` for `/etc/tubed/tubed.toml`. They are read in the byte "
      "order of their names.\n\n"
      "- A later file replaces the value of each key that it has. An array of text is one value. "
      "`[[listen]]`, `[[role]]` and `[[policy]]` add up: two with the same address, name or "
      "pattern "
      "are a mistake, also in different files. The first `[[policy]]` whose pattern matches "
      "counts, "
      "so those of `/etc/tubed/tubed.toml` come first.\n"
      "- Each file is complete TOML: a table may be opened in each. A mistake in one file refuses "
      "all, at a start and at a reload, also if a later file or a flag replaces the value.\n"
      "- Files whose names begin with a dot or have another ending are ignored, such as "
      "`50-limits.toml~`. A directory that does not exist is no mistake.\n"
      "- There are at most {} drop-ins, each a regular file of at most 1 MiB or a link to one. The "
      "user that runs the server must be able to read them.\n"
      "- A file of `--config` whose name does not end in `.toml` has no drop-ins.\n\n"
      "`tubed --config FILE --print-config` prints the files that were read, and each setting in "
      "force with its origin: the file and line, the flag, or the default. The output is a "
      "settings "
      "file:\n\n"
      "```toml\n"
      "# Read: /etc/tubed/tubed.toml\n"
      "# Read: /etc/tubed/tubed.d/50-limits.toml\n"
      "…\n"
      "[limits]\n"
      "connections = 10000  # the default\n"
      "job_bytes = \"1MiB\"  # /etc/tubed/tubed.d/50-limits.toml:2\n"
      "```\n\n"
      "The environment sets nothing. systemd makes flags of `TUBED_OPTIONS` of the service, which "
      "a command in a shell has to give as well.\n",
      config::kMaxDropIns);
}

std::string cluster_section() {
  std::string result =
      "\n## In a cluster\n\nAll nodes need the same `policy`, `role` and `listen`, of which only "
      "`auth` and `role` count, and the same values of these settings. Nodes compare them "
      "([clustering](../clustering.md#settings)).\n\n";
  for (const auto& row : config::settings_table()) {
    if (row.same_on_all_nodes) result += fmt::format("- `{}`\n", row.key);
  }
  return result;
}

}  // namespace

std::string settings_markdown() {
  std::string result =
      "<!-- Generated from src/config/table.cc by tools/generate-docs. Do not edit. -->\n\n"
      "# Settings\n\n"
      "Every setting is a key of the TOML file that `--config` names, or of one of its "
      "[drop-ins](#files), and a flag. A flag overrides the files, and the files override the "
      "default. Settings with reload \"yes\" take effect when the files are reloaded; others need "
      "a "
      "restart. A reload reads only the files, never the flags; the log line \"reloaded\" names "
      "the "
      "settings that changed, or says that nothing changed.\n\n"
      "Sizes are in bytes (`65536`) or have a unit (`\"64KiB\"`, also MiB, GiB, TiB, PiB). Times "
      "are in seconds (`30`) or have a unit (`\"50ms\"`, also s, m, h, d). An array of text may "
      "also be a single text; a flag has commas between the texts. If a setting is wrong, the "
      "server does not start: it exits with code 78 after one line that names the file, the line, "
      "the key and the reason.\n" +
      files_section();
  std::string_view section = "-";
  for (const auto& row : config::settings_table()) {
    if (row.section() == section) continue;
    section = row.section();
    result += settings_section(section);
  }
  return result + listen_section() + role_section() + policy_section() + cluster_section() +
         options_section("Other flags", false) + options_section("Flags of beanstalkd", true);
}

}  // namespace tubed::docs
