// A row becomes an item of a list: the key with its placeholder, the documentation, the bounds, the
// default, whether a change needs a restart, and the flag. mdoc macros begin with a dot at the
// beginning of a line, so all prose passes through mdoc_text().
#include "tools/docs/settings_mdoc.h"

#include <cctype>

#include <fmt/format.h>

#include "base/assert.h"
#include "config/drop_ins.h"
#include "config/table.h"
#include "tools/docs/mdoc.h"
#include "tools/docs/settings_file.h"

namespace tubed::docs {
namespace {

using config::Setting;

// `-f` or `--listen` as a macro of mdoc, which adds the first dash itself.
std::string flag_macro(std::string_view flag) {
  TUBED_ASSERT(flag.starts_with('-'));
  return fmt::format("Fl {}", flag.substr(1));
}

// The head of an item: the short flag, the long flag and the argument, as far as they exist.
std::string item(char short_flag, std::string_view long_flag, std::string_view argument,
                 bool optional = false) {
  std::string result = ".It";
  if (short_flag != '\0') result += fmt::format(" Fl {}", short_flag);
  if (!long_flag.empty()) {
    result += fmt::format("{} {}", short_flag != '\0' ? " ," : "", flag_macro(long_flag));
  }
  if (!argument.empty()) result += fmt::format("{} Ar {}", optional ? " Ns Op = Ns" : "", argument);
  return result + '\n';
}

// "bytes: 4KiB to 1GiB" or a list of words, as a sentence.
std::string bounds_sentence(const config::Type& type) {
  auto text = config::bounds(type);
  if (text.empty()) return text;
  if (text.find(": ") == std::string::npos) return fmt::format("Values: {}.", text);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

std::string setting_item(const Setting& row) {
  auto result = fmt::format(".It Ic {} No = Ar {}\n", row.name(), config::placeholder(row.type));
  result += mdoc_text(row.doc);
  result += mdoc_text(bounds_sentence(row.type));
  const auto default_value = row.default_value();
  if (default_value != config::Value(std::string()) && row.can_be_written(default_value)) {
    result +=
        mdoc_text(fmt::format("The default is {}.", config::to_toml(row.type, default_value)));
  }
  if (!row.reloadable) result += "A change needs a restart.\n";
  result += fmt::format(".Pp\nFlag:\n.{}", flag_macro(row.flag()));
  if (row.short_flag != '\0') result += fmt::format(" , Fl {}", row.short_flag);
  return result + '\n';
}

// A new list begins with each section of the table.
std::string settings_list() {
  std::string result;
  std::string_view section = "-";
  for (const auto& row : config::settings_table()) {
    if (row.section() != section) {
      if (section != "-") result += ".El\n";
      section = row.section();
      result += section.empty() ? std::string(".Ss Outside of all sections\n")
                                : fmt::format(".Ss [{}]\n", section);
      result += ".Bl -tag -width Ds\n";
    }
    result += setting_item(row);
  }
  return result + ".El\n";
}

// The keys of [[listen]] or [[role]], with their examples.
template <class Rows>
std::string element_list(const Rows& rows) {
  std::string result = ".Bl -tag -width Ds\n";
  for (const auto& row : rows) {
    result += fmt::format(".It Ic {} No = Ar {}\n", row.key, config::placeholder(row.type));
    if (row.required) result += "Required.\n";
    if (row.unix_only) result += "Only for unix:.\n";
    result += mdoc_text(row.doc);
    result += mdoc_text(bounds_sentence(row.type));
    const auto example = config::value_from_text(row.type, row.example);
    TUBED_ASSERT(example);
    result += mdoc_text(fmt::format("Example: {}.", config::to_toml(row.type, example.value())));
  }
  return result + ".El\n";
}

std::string listen_list() {
  return ".Ss [[listen]]\nOne table for each address.\nWithout such a table,\n.Xr tubed 8\nlistens "
         "on 127.0.0.1:11300.\n" +
         mdoc_text(
             "A change of an address, a mode or a group needs a restart. Changes of other keys, "
             "and of the contents of their files, take effect when the file is reloaded. The keys "
             "of tls may also be written as one table.") +
         element_list(config::listen_table());
}

std::string role_list() {
  return ".Ss [[role]]\n" +
         mdoc_text(
             "One table for each role: the rights of its clients, their tokens or names, and their "
             "limits, in addition to the server's. A client has one role. A change takes effect "
             "when the file is reloaded, also for connected clients.") +
         element_list(config::role_table());
}

// The keys of [[policy]].
std::string policy_list() {
  std::string result =
      ".Ss [[policy]]\nOne table for the tubes whose names match a shell pattern.\nThe first "
      "table that matches a name is its policy; a value that a client sets by tube-policy takes "
      "precedence.\n.Bl -tag -width Ds\n.It Ic tubes No = Ar PATTERN\nRequired.\nExample: "
      "\"mail.*\".\n";
  for (const auto& row : policy_keys()) {
    result += fmt::format(".It Ic {} No = Ar VALUE\n", row.name);
    result += mdoc_text(row.meaning);
    result += mdoc_text(fmt::format("Values: {}. Default: {}.", row.form, row.default_value));
  }
  return result + ".El\n";
}

}  // namespace

std::string options_mdoc() {
  std::string result = ".Bl -tag -width Ds\n";
  for (const bool of_beanstalkd : {false, true}) {
    for (const auto& row : config::options_table()) {
      if (row.of_beanstalkd != of_beanstalkd) continue;
      result += item(row.short_flag, row.long_flag, row.argument, row.argument_is_optional) +
                mdoc_text(row.doc);
    }
  }
  for (const auto& row : config::settings_table()) {
    if (row.short_flag == '\0') continue;
    result += item(row.short_flag, row.flag(), config::placeholder(row.type)) +
              mdoc_text(row.first_sentence());
  }
  return result + ".El\n";
}

std::string settings_man_page() {
  std::string result =
      ".\\\" Generated from src/config/table.cc by tools/generate-docs. Do not edit.\n"
      ".Dd November 21, 2026\n.Dt TUBED.TOML 5\n.Os \"tubed " TUBED_VERSION
      "\"\n.Sh NAME\n.Nm tubed.toml\n.Nd settings of the work-queue daemon tubed\n"
      ".Sh DESCRIPTION\n";
  result += mdoc_text(
      "The TOML file that tubed --config names. The service reads /etc/tubed/tubed.toml. Every key "
      "is optional. Every key outside [[listen]], [[role]] and [[policy]] is also a flag. A flag "
      "overrides the files, and the files override the default.");
  result += ".Pp\n";
  result += mdoc_text(fmt::format(
      "After this file the server reads its drop-ins: the files whose names end in .toml and do "
      "not "
      "begin with a dot, in the directory with the name of the file and .d for .toml, such as "
      "/etc/tubed/tubed.d/50-limits.toml. They are read in the byte order of their names. A later "
      "file replaces the value of each key that it has; [[listen]], [[role]] and [[policy]] add "
      "up, "
      "and two with the same address, name or pattern are a mistake. A directory that does not "
      "exist is no mistake. There are at most {} drop-ins, each a regular file or a link to one; a "
      "file has at most 1 MiB. tubed --print-config prints the origin of each value.",
      config::kMaxDropIns));
  result += ".Pp\n";
  result += mdoc_text(
      "A SIZE is in bytes (65536) or has a unit (\"64KiB\", also MiB, GiB, TiB, PiB). A TIME is in "
      "seconds (30) or has a unit (\"50ms\", also s, m, h, d). Text, words and values with a unit "
      "are written in double quotes. FILES, NAMES and other lists are an array of strings, "
      "[\"a\", \"b\"], or one string; a flag has commas between the strings.");
  result += ".Pp\n";
  result += mdoc_text(
      "SIGHUP, or tubectl reload, makes the server reread all files. If one has a mistake, no "
      "setting changes. A "
      "changed setting that needs a restart is logged and not applied. Flags and the environment "
      "are read only at startup. A mistake at startup is reported in one line with file, line, key "
      "and reason, and the exit code is 78.");
  result += ".Sh SETTINGS\n" + settings_list() + listen_list() + role_list() + policy_list();
  result +=
      ".Sh FILES\n.Bl -tag -width Ds\n.It Pa /etc/tubed/tubed.toml\nThe settings of the service, "
      "with the keys that are changed most.\n"
      ".It Pa /etc/tubed/tubed.d/*.toml\nThe settings of the operator: an upgrade of the package "
      "does not touch them.\n"
      ".It Pa /usr/share/doc/tubed/tubed.toml\nEvery key with its meaning and default, to copy "
      "from.\n.El\n"
      ".Sh EXAMPLES\n.Bd -literal\n"
      "[journal]\ndirectory = \"/var/lib/tubed\"\nsync = \"always\"\n\n"
      "[limits]\njob_bytes = \"1MiB\"\n\n"
      "[auth]\ntokens = \"/etc/tubed/tokens\"\n\n"
      "[drain]\nexit = \"when-idle\"\n" +
      tls_example() +
      ".Ed\n.Pp\nTo check the settings:\n.Pp\n"
      ".Dl tubed --config /etc/tubed/tubed.toml --check-config\n"
      ".Sh SEE ALSO\n.Xr tubed-console 7 ,\n.Xr tubed-protocol 7 ,\n.Xr tubed 8\n";
  return result;
}

}  // namespace tubed::docs
