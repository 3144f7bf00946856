// How a file is read: toml++ parses it as a whole, collect() flattens the tables into assignments
// with dotted keys, and sort_by_position() puts these into the order of the file, which toml++ does
// not keep. The Reader applies them one by one and reports the first mistake in the file.
//
// The only file that includes toml++, whose headers are slow to compile.
#include "config/toml_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/planted.h"
#include "config/table.h"
#include "text/suggestion.h"

namespace tubed::config {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::string_view kListen = "listen";
constexpr std::string_view kPolicy = "policy";
constexpr std::string_view kTubes = "policy.tubes";
constexpr std::string_view kRole = "role";
constexpr std::string_view kProxyProtocol = "proxy_protocol";

// One assignment of the file, or one [[listen]], [[policy]] or [[role]].
struct Entry {
  std::string key;  // the whole path, dotted
  toml::source_position at;
  const toml::node* node = nullptr;
  bool is_element = false;  // one of [[listen]], [[policy]] or [[role]]
};

// The type of the node as an error names it.
std::string_view type_word(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

// True if keys of the table begin with this path.
template <class Rows>
bool has_keys_in(const Rows& rows, std::string_view path) {
  return std::ranges::any_of(rows, [&](const auto& row) {
    return row.key.size() > path.size() && row.key.starts_with(path) && row.key[path.size()] == '.';
  });
}

bool is_section(std::string_view key) {
  return has_keys_in(settings_table(), key);
}

// True for a table within [[listen]] or [[role]].
bool is_part_of_element(std::string_view path) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view rest = path.substr(dot + 1);
  return path.substr(0, dot) == kListen && has_keys_in(listen_table(), rest);
}

bool is_element_table(std::string_view key) {
  return key == kListen || key == kPolicy || key == kRole;
}

// `listen = []` is refused: it would mean the default listener, not "no listener".
bool is_array_of_elements(std::string_view key, const toml::array& array) {
  return array.is_array_of_tables() ||
         (array.empty() && (key != kListen || TUBED_PLANTED(empty_is_the_default)));
}

// A key that contains a dot was quoted in the file. Quotes it here too: it must not look like two
// keys.
std::string key_part(const toml::key& key) {
  const bool is_quoted = key.str().find('.') != std::string_view::npos;
  return is_quoted ? config::in_quotes(key.str()) : printable(key.str());
}

void sort_by_position(std::vector<Entry>& entries) {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tuple(e.at.line, e.at.column); });
}

// Lists the assignments of `table` and of the sections in it, in no order.
void collect(const toml::table& table, const std::string& prefix, std::vector<Entry>& entries) {
  for (const auto& [key, node] : table) {
    const auto path = prefix + key_part(key);
    const auto* array = node.as_array();
    if (node.is_table() && (is_section(path) || is_part_of_element(path))) {
      collect(*node.as_table(), path + ".", entries);
    } else if (is_element_table(path) && array && is_array_of_elements(path, *array)) {
      for (const auto& element : *array) {
        entries.push_back({path, element.source().begin, &element, true});
      }
    } else {
      entries.push_back({path, key.source().begin, &node, false});
    }
  }
}

// A list is an array of strings, or a string for a list of one.
Result<Value> list_of(const Type& type, const toml::node& node) {
  const auto wrong = [&](const toml::node& found) {
    return Error{fmt::format("expected {}, not {}", expected(type), type_word(found))};
  };
  std::vector<std::string> texts;
  if (const auto* text = node.as_string()) {
    texts.push_back(text->get());
  } else if (const auto* array = node.as_array()) {
    for (const auto& element : *array) {
      if (!element.is_string()) return wrong(element);
      texts.push_back(element.as_string()->get());
    }
  } else {
    return wrong(node);
  }
  return value_from_list(type, std::move(texts));
}

// A count is written as an integer only; a size or a time may also be a string with a unit.
Result<Value> value_of(const Type& type, const toml::node& node) {
  if (type.kind == Kind::list) return list_of(type, node);
  if (const auto* number = node.as_integer()) return value_from_integer(type, number->get());
  if (const auto* truth = node.as_boolean(); truth != nullptr && type.kind == Kind::truth)
    return Value(std::int64_t{truth->get()});
  const auto* text = node.as_string();
  if (!text || type.kind == Kind::count || type.kind == Kind::truth) {
    return Error{fmt::format("expected {}, not {}", expected(type), type_word(node))};
  }
  return value_from_text(type, text->get());
}

std::string unknown_reason(std::string_view what, std::string_view hint) {
  return fmt::format("unknown {}{}{}", what, hint.empty() ? "" : "; ", hint);
}

// Applies the last of `lines.files`; the first mistake ends it.
class Reader {
 public:
  Reader(Settings& settings, FileLines& lines) : settings_(settings), lines_(lines) {}

  Result<void> read(const toml::table& root) {
    std::vector<Entry> entries;
    collect(root, "", entries);
    sort_by_position(entries);
    for (const auto& entry : entries) {
      auto done = apply(entry);
      if (!done) return done;
    }
    return {};
  }

  // Every error of a file has this form, which editors recognize as a position.
  Error error(const toml::source_position& at, std::string_view key,
              std::string_view reason) const {
    return Error{fmt::format("{}: {}: {}", lines_.place(line_of(at)), key, reason)};
  }

 private:
  FileLine line_of(const toml::source_position& at) const {
    return {lines_.files.size() - 1, at.line};
  }

  // An earlier line as an error names it: "line 3", or with its file if it is in another.
  std::string earlier(FileLine at) const {
    const bool is_here = at.file == lines_.files.size() - 1;
    return is_here ? fmt::format("line {}", at.line) : lines_.place(at);
  }

  Result<void> apply(const Entry& entry) {
    if (entry.key == kListen) return apply_listen(entry);
    if (entry.key == kPolicy) return apply_policy(entry);
    if (entry.key == kRole) return apply_role(entry);
    const auto rows = settings_table();
    const auto row = std::ranges::find(rows, entry.key, &Setting::key);
    if (row == rows.end()) return unknown(entry);
    const auto value = value_of(row->type, *entry.node);
    if (!value) return error(entry.at, entry.key, value.error().message);
    row->set(settings_, value.value());
    lines_.keys[entry.key] = line_of(entry.at);
    return {};
  }

  // Suggests the nearest key, or for a table the nearest section.
  Error unknown(const Entry& entry) const {
    if (is_section(entry.key)) {
      return error(entry.at, entry.key,
                   fmt::format("expected a table, not {}", type_word(*entry.node)));
    }
    // Load balancers use it for HTTP as well.
    if (entry.key.substr(entry.key.rfind('.') + 1) == kProxyProtocol) {
      return error(
          entry.at, entry.key,
          "only [[listen]] has this key: HTTP and the nodes of a cluster take no header of "
          "the PROXY protocol");
    }
    std::vector<std::string> candidates;
    const bool is_table = entry.node->is_table();
    for (const auto& row : settings_table()) {
      candidates.emplace_back(is_table ? row.section() : row.key);
    }
    candidates.emplace_back(kListen);
    candidates.emplace_back(kPolicy);
    candidates.emplace_back(kRole);
    return error(entry.at, entry.key,
                 unknown_reason(is_table ? "table" : "key", did_you_mean(entry.key, candidates)));
  }

  Result<void> apply_listen(const Entry& entry) {
    Listen listen;
    const auto address_at =
        TRY(apply_element(entry, kListen, listen_table(), listen,
                          [](const Listen& one) { return one.kind == Listen::Kind::unix_socket; }));
    return add(listen, address_at);
  }

  Result<void> apply_role(const Entry& entry) {
    RoleSettings role;
    TRY(apply_element(entry, kRole, role_table(), role, [](const auto&) { return false; }));
    if (role.role.name.empty()) return error(entry.at, "role.name", "is empty");
    for (std::size_t i = 0; i < settings_.roles.size(); ++i) {
      if (settings_.roles[i].role.name != role.role.name) continue;
      return error(entry.at, "role.name",
                   fmt::format("{} is another role already ({})", config::in_quotes(role.role.name),
                               earlier(lines_.roles[i])));
    }
    settings_.roles.push_back(std::move(role));
    lines_.roles.push_back(line_of(entry.at));
    return {};
  }

  // Fills `element` from one table of the file. `is_unix`: keys that only a unix socket has are
  // allowed. Returns the position of the last required key.
  template <class Row, class Element, class IsUnix>
  Result<toml::source_position> apply_element(const Entry& entry, std::string_view table,
                                              std::span<const Row> rows, Element& element,
                                              const IsUnix& is_unix) const {
    if (!entry.is_element) return not_elements(entry);
    const auto path = [&](const Row& row) { return fmt::format("{}.{}", table, row.key); };
    std::vector<Entry> keys;
    collect(*entry.node->as_table(), fmt::format("{}.", table), keys);
    sort_by_position(keys);
    // The required keys come first, as the address decides which other keys are allowed.
    auto required_at = entry.at;
    bool is_complete = true;
    std::string missing;
    for (const Row& row : rows) {
      if (!row.required) continue;
      const auto key = std::ranges::find(keys, path(row), &Entry::key);
      if (key == keys.end()) {
        missing = path(row);
        is_complete = false;
        continue;
      }
      required_at = key->at;
      const auto value = value_of(row.type, *key->node);
      is_complete = is_complete && value.ok();
      if (value) row.set(element, value.value());
    }
    for (const Entry& key : keys) {
      const auto row = std::ranges::find(rows, key.key, path);
      if (row == rows.end()) return unknown_key(key, rows, path);
      const auto value = value_of(row->type, *key.node);
      if (!value) return error(key.at, key.key, value.error().message);
      if (is_complete && row->unix_only && !is_unix(element)) {
        return error(key.at, key.key, "only a unix: address has one");
      }
      row->set(element, value.value());
    }
    if (!missing.empty()) return error(entry.at, missing, "missing");
    return required_at;
  }

  template <class Rows, class Path>
  Error unknown_key(const Entry& entry, const Rows& rows, const Path& path) const {
    std::vector<std::string> candidates;
    for (const auto& row : rows) candidates.push_back(path(row));
    return error(entry.at, entry.key, unknown_reason("key", did_you_mean(entry.key, candidates)));
  }

  // The usual cause is `[listen]` in place of `[[listen]]`.
  Error not_elements(const Entry& entry) const {
    const auto* array = entry.node->as_array();
    if (array != nullptr && array->empty())
      return error(entry.at, entry.key, "is empty; for the default, leave it out");
    return error(entry.at, entry.key,
                 fmt::format("expected tables, each opened by [[{}]], not {}", entry.key,
                             type_word(*entry.node)));
  }

  Result<void> apply_policy(const Entry& entry) {
    if (!entry.is_element) return not_elements(entry);
    std::vector<Entry> keys;
    collect(*entry.node->as_table(), fmt::format("{}.", kPolicy), keys);
    sort_by_position(keys);
    TubePattern policy;
    for (const auto& key : keys) TRY(apply_policy_key(key, policy));
    if (policy.tubes.empty()) return error(entry.at, kTubes, "missing");
    for (std::size_t i = 0; i < lines_.policies.size(); ++i) {
      if (settings_.policies[i].tubes != policy.tubes) continue;
      return error(entry.at, kTubes,
                   fmt::format("{} has a policy already ({})", config::in_quotes(policy.tubes),
                               earlier(lines_.policies[i])));
    }
    settings_.policies.push_back(std::move(policy));
    lines_.policies.push_back(line_of(entry.at));
    return {};
  }

  // Takes the values of tube-policy; a number may be an integer.
  Result<void> apply_policy_key(const Entry& entry, TubePattern& policy) const {
    const auto* text = entry.node->as_string();
    const auto* number = entry.node->as_integer();
    if (text == nullptr && number == nullptr) {
      return error(entry.at, entry.key,
                   fmt::format("expected a string or an integer, not {}", type_word(*entry.node)));
    }
    const std::string value = text != nullptr ? text->get() : fmt::format("{}", number->get());
    if (entry.key == kTubes) {
      if (value.empty() || !is_plain_text(value)) {
        return error(entry.at, entry.key, "expected a pattern of names, like \"mail.*\"");
      }
      if (!is_tube_pattern(value)) {
        return error(entry.at, entry.key,
                     fmt::format("{} matches the name of no tube", config::in_quotes(value)));
      }
      policy.tubes = value;
      return {};
    }
    const std::string_view name = std::string_view(entry.key).substr(kPolicy.size() + 1);
    const auto key = find_policy_key(name);
    if (!key) return unknown_policy_key(entry);
    if (!is_policy_value(*key, value)) {
      const auto& row = policy_keys()[static_cast<std::size_t>(*key)];
      return error(entry.at, entry.key,
                   fmt::format("{} is not: {}", config::in_quotes(value), row.form));
    }
    policy.values[static_cast<std::size_t>(*key)] = value;
    return {};
  }

  Error unknown_policy_key(const Entry& entry) const {
    std::vector<std::string> candidates{std::string(kTubes)};
    for (const auto& row : policy_keys()) {
      candidates.push_back(fmt::format("{}.{}", kPolicy, row.name));
    }
    return error(entry.at, entry.key, unknown_reason("key", did_you_mean(entry.key, candidates)));
  }

  Result<void> add(const Listen& listen, const toml::source_position& at) {
    for (std::size_t i = 0; i < lines_.listeners.size(); ++i) {
      if (!clash(settings_.listeners[i], listen)) continue;
      return error(at, "listen.address",
                   fmt::format("{} is already listened on ({})", to_string(listen),
                               earlier(lines_.listeners[i])));
    }
    settings_.listeners.push_back(listen);
    lines_.listeners.push_back(line_of(at));
    return {};
  }

  Settings& settings_;
  FileLines& lines_;
};

// Reads at most one byte more than the limit, which suffices to detect a file that is too large.
Result<std::string> contents_of(const std::string& file) {
  const auto failed = [&](const std::string& reason) {
    return Error{fmt::format("{}: cannot read: {}", printable(file), reason)};
  };
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return failed(std::generic_category().message(errno));
  std::string contents(kMaxFileBytes + 1, '\0');
  stream.read(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (stream.bad()) return failed(std::generic_category().message(errno));
  contents.resize(static_cast<std::size_t>(stream.gcount()));
  if (contents.size() > kMaxFileBytes) return failed("larger than 1MiB");
  return contents;
}

}  // namespace

std::string FileLines::place(FileLine at) const {
  return fmt::format("{}:{}", printable(files[at.file]), at.line);
}

Result<void> read_toml_file(const std::string& file, Settings& settings, FileLines& lines) {
  const auto contents = TRY(contents_of(file));
  lines.files.push_back(file);
  Reader reader(settings, lines);
  try {
    return reader.read(toml::parse(contents));
  } catch (const toml::parse_error& error) {
    return reader.error(error.source().begin, "not TOML", printable(error.description()));
  } catch (const std::exception& error) {
    return Error{fmt::format("{}: cannot read: {}", printable(file), printable(error.what()))};
  }
}

}  // namespace tubed::config
