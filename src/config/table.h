// The tables: one row per setting, per key of a listener or a role, and per flag that is not a
// setting.
//
// A row is the only definition of a setting: the TOML reader, the flags, --help, --print-config,
// the reload and the generated documentation all read it. To add a setting, add its row and its
// member. Invariant: keys and flags are unique; the rows of a section are together, and keys
// without a section come first, as TOML requires. The compiler checks it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/command_line.h"
#include "config/settings.h"
#include "config/value.h"

namespace tubed::config {

// Rows are constexpr and live as long as the program, so string views and pointers to rows stay
// valid.
struct Setting {
  std::string_view key;
  char short_flag = '\0';  // beanstalkd's, if any
  Type type;
  std::int64_t default_number = 0;     // in the unit of Value; of a text or an address, unused
  std::string_view default_text = {};  // of a text or an address
  bool reloadable = true;
  bool same_on_all_nodes = false;  // of a cluster
  // False: an empty argument is refused, as it comes from an unset variable in a script.
  bool takes_empty_flag = true;
  std::string_view doc;                // --help shows the first sentence only
  std::string_view service_hint = {};  // appended to `doc` in packaging/tubed.toml
  Value (*get)(const Settings&) = nullptr;
  void (*set)(Settings&, const Value&) = nullptr;  // Precondition: a value of `type`

  Value default_value() const;
  // False: `value` is the default of a key that is refused if it is empty.
  bool can_be_written(const Value& value) const;
  std::string flag() const;  // "--limits-tubes"
  // "limits"; "" for a key outside of all sections
  constexpr std::string_view section() const {
    const auto dot = key.find('.');
    return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
  }
  std::string_view name() const;  // "tubes": the key in its section
  std::string_view first_sentence() const;
};

// A key of a table that a file may have several times, [[listen]] or [[role]].
template <class Element>
struct ElementKey {
  std::string_view key;  // dotted if it is in a table of its own: "tls.certificate"
  Type type;
  bool required = false;
  bool unix_only = false;
  std::string_view example;  // as value_from_text() reads it
  std::string_view doc;
  Value (*get)(const Element&) = nullptr;         // nothing: it is not given
  void (*set)(Element&, const Value&) = nullptr;  // Precondition: a value of `type`
};
using ListenKey = ElementKey<Listen>;
using RoleKey = ElementKey<RoleSettings>;

enum class Action : std::uint8_t {
  help,
  version,
  config_file,
  check_config,
  print_config,
  listen,
  port,
  raise_log_level,
  sets,  // a setting, in another spelling
  task,  // done instead of serving
  accept_loss,
  test_mode,
  no_stdin,
  address_file,
  preload,
  ignored,  // with a warning
};

// A flag that is not a setting, or beanstalkd's spelling of a setting.
struct Option {
  char short_flag = '\0';
  std::string_view long_flag;  // with its dashes, or empty
  std::string_view argument;   // its placeholder, or empty
  Action action;
  bool of_beanstalkd = false;
  std::string_view doc;
  Task task = Task::serve;            // of Action::task
  std::string_view setting = {};      // key of the setting that it sets, or that its task needs
  std::string_view value = {};        // the value that it sets, or the unit of its argument
  bool argument_is_optional = false;  // it is given as --flag=argument, or left out

  std::string names() const;  // "-l, --listen ADDR"
};

std::span<const Setting> settings_table();
std::span<const ListenKey> listen_table();  // elements.cc, as the next
std::span<const RoleKey> role_table();
std::span<const Option> options_table();

// "-z/--limits-job-bytes": a flag as errors name it.
std::string shown_flag(char short_flag, std::string_view long_flag);
std::string shown_flag(const Setting& row);

// Up to the first full stop and space, the stop included.
std::string_view first_sentence_of(std::string_view doc);

}  // namespace tubed::config
