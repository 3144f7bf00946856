// The order is the precedence: defaults, then the file, then its drop-ins, then the flags. A later
// file replaces single keys, and adds listeners, policies and roles. After that come the checks
// that concern several settings, which no row can express: a task that needs a journal, the size of
// the journal against its segments, listeners against -p, the HTTP address against the listeners,
// what TLS, authentication and roles need of each other, and what a node of a cluster needs
// (cluster_check.h). Places finds the origin of a setting for an error, because the reader needs to
// know which file or flag to change.
#include "config/load.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/cluster_check.h"
#include "config/drop_ins.h"
#include "config/places.h"
#include "config/table.h"
#include "config/toml_file.h"
#include "config/types.h"

namespace tubed {
namespace {

using config::Places;

// Each -V raises the log level by one step, up to debug.
void apply_flags(const CommandLine& line, Settings& settings) {
  const auto rows = config::settings_table();
  for (const auto& [key, value] : line.settings) {
    std::ranges::find(rows, key, &config::Setting::key)->set(settings, value);
  }
  const auto most_verbose = static_cast<std::size_t>(LogLevel::debug);
  const auto level = static_cast<std::size_t>(settings.log_level);
  const auto steps = std::min(line.log_level_steps, most_verbose - level);
  settings.log_level = static_cast<LogLevel>(level + steps);
}

// Decides between the listeners of the flags and of the file, and the default listener. Sets
// default_listener if no address and no port is configured.
Result<void> choose_listeners(const CommandLine& line, const config::FileLines& lines,
                              Settings& settings) {
  settings.default_listener =
      line.listeners.empty() && settings.listeners.empty() && !line.port.has_value();
  if (!line.listeners.empty()) {
    settings.listeners = line.listeners;
    return {};
  }
  if (settings.listeners.empty()) {
    settings.listeners.resize(1);
    // A test suite takes any port that is free.
    if (line.test_mode) settings.listeners.front().port = 0;
    if (line.port) settings.listeners.front().port = *line.port;
    return {};
  }
  if (!line.port) return {};
  // Either meaning would surprise: a port without effect, or a port that replaces addresses.
  return Error{
      fmt::format("-p/--port: {}: listen.address has a port of its own; give -l as well, or, for a "
                  "service, remove -p from its flags",
                  lines.place(lines.listeners.front()))};
}

// --salvage and --backup copy the journal that the settings name; --cluster-leave,
// --cluster-bootstrap and --cluster-recover convert it.
Result<void> check_task(const CommandLine& line, const Settings& settings) {
  const auto missing = [&](std::string_view key, std::string_view flag) {
    return Error{fmt::format("{}: {} is not set; give {} as well",
                             config::printable(line.config_file), key, flag)};
  };
  const bool needs_journal =
      line.task == Task::salvage || line.task == Task::backup || line.task == Task::cluster_leave;
  if (needs_journal && settings.journal_directory.empty())
    return missing("journal.directory", "-b");
  const bool needs_name =
      line.task == Task::cluster_bootstrap || line.task == Task::cluster_recover;
  if (needs_name && !settings.cluster.enabled()) return missing("cluster.name", "--cluster-name");
  return {};
}

// The journal needs room for the segment that it writes, the segment that it compacts, and its
// reserve for a full disk.
constexpr std::uint64_t kMinSegments = 4;

Result<void> check_journal(const Settings& settings, const Places& places) {
  const std::uint64_t segment = segment_bytes_in_force(settings);
  const std::uint64_t least = kMinSegments * segment;
  if (settings.journal_max_bytes == 0 || settings.journal_max_bytes >= least) return {};
  const std::string reason = segment == settings.journal_segment_bytes
                                 ? places.mention("journal.segment_size")
                                 : "eight jobs of " + places.mention("limits.job_bytes");
  return Error{fmt::format("{}: {} is less than {}, {} segments of {} bytes ({})",
                           places.key("journal.max_bytes"), settings.journal_max_bytes, least,
                           kMinSegments, segment, reason)};
}

// Found here, since the kernel would report only that the address is in use.
Result<void> check_http(const Settings& settings, const Places& places) {
  if (!settings.http_listen) return {};
  const auto& listeners = settings.listeners;
  const auto taken = std::ranges::find_if(
      listeners, [&](const Listen& listen) { return clash(listen, *settings.http_listen); });
  if (taken == listeners.end()) return {};
  return Error{fmt::format("{}: clients already connect to {} ({})", places.key("http.listen"),
                           to_string(*settings.http_listen),
                           places.listener(static_cast<std::size_t>(taken - listeners.begin())))};
}

// `place`: of the settings, for the error.
Result<void> check_tls(const TlsSettings& tls, const std::string& place) {
  const auto refused = [&](std::string_view reason) {
    return Error{fmt::format("{}: {}", place, reason)};
  };
  if (!tls.enabled()) {
    if (!tls.keys.empty()) return refused("tls.key without tls.certificate");
    if (!tls.client_ca.empty()) return refused("tls.client_ca without tls.certificate");
    if (tls.min_version != TlsSettings().min_version)
      return refused("tls.min_version without tls.certificate");
    return {};
  }
  if (tls.keys.empty() || tls.keys.size() == tls.certificates.size()) return {};
  return refused(fmt::format("{} files in tls.certificate and {} in tls.key",
                             tls.certificates.size(), tls.keys.size()));
}

Result<void> check_http_tls(const TlsSettings& tls, const Places& places) {
  const std::string_view key = tls.enabled()            ? "http.tls.certificate"
                               : !tls.keys.empty()      ? "http.tls.key"
                               : !tls.client_ca.empty() ? "http.tls.client_ca"
                                                        : "http.tls.min_version";
  return check_tls(tls, places.key(key));
}

bool has_role(const Settings& settings, const std::string& name) {
  return std::ranges::any_of(settings.roles,
                             [&](const RoleSettings& one) { return one.role.name == name; });
}

// Why the listener lacks what its authentication needs, or nothing.
std::string authentication_mistake(const Listen& listen, const Settings& settings) {
  switch (listen.auth) {
    case AuthMode::none:
      if (listen.role.empty() || has_role(settings, listen.role)) return {};
      return fmt::format("no [[role]] has the name {}", config::in_quotes(listen.role));
    case AuthMode::token:
      if (settings.tokens.empty()) return "auth = \"token\" needs auth.tokens";
      if (listen.tls.enabled() || is_local(listen)) break;
      return "auth = \"token\" needs tls, or other machines could read the tokens on their way";
    case AuthMode::mtls:
      if (listen.tls.client_ca.empty()) return "auth = \"mtls\" needs tls.client_ca";
      break;
    case AuthMode::peer:
      if (listen.kind != Listen::Kind::unix_socket) return "auth = \"peer\" needs a unix: address";
      break;
  }
  if (!listen.role.empty()) return "role is for auth = \"none\": here [[role]] names its clients";
  return {};
}

// Returns the mistake in the listener's proxy_protocol; empty if it is valid.
std::string proxy_mistake(const Listen& listen) {
  if (listen.proxies.empty()) return {};
  const bool is_unix = listen.kind == Listen::Kind::unix_socket;
  for (const std::string& one : listen.proxies) {
    const auto wrong = [&](std::string_view reason) {
      return fmt::format("proxy_protocol: {} {}", config::in_quotes(one), reason);
    };
    if (is_unix && one != kUnixProxies) return wrong("is for TCP; a unix: address needs \"unix\"");
    if (is_unix) continue;
    if (one == kUnixProxies) return wrong("needs a unix: address");
    if (const std::string mistake = network_mistake(one); !mistake.empty()) return wrong(mistake);
  }
  if (listen.auth == AuthMode::peer)
    return "auth = \"peer\" with proxy_protocol: each client would have the user of the proxy";
  return {};
}

// The authentication of HTTP. Its socket may be inherited: then its address is not known here.
Result<void> check_http_access(const Settings& settings, const Places& places) {
  Listen listen = settings.http_listen.value_or(Listen());
  if (!settings.http_listen && settings.http.auth == AuthMode::peer)
    listen.kind = Listen::Kind::unix_socket;
  listen.tls = settings.http_tls;
  listen.auth = settings.http.auth;
  listen.role = settings.http.role;
  const std::string mistake = authentication_mistake(listen, settings);
  if (mistake.empty()) return {};
  const bool is_role = listen.auth == AuthMode::none || !listen.role.empty();
  return Error{fmt::format("{}: {}", places.key(is_role ? "http.role" : "http.auth"), mistake)};
}

Result<void> check_listeners(const Settings& settings, const Places& places) {
  for (std::size_t i = 0; i < settings.listeners.size(); ++i) {
    const Listen& listen = settings.listeners[i];
    const std::string place = fmt::format("{}: listen {}", places.listener(i), to_string(listen));
    TRY(check_tls(listen.tls, place));
    const std::string mistake = authentication_mistake(listen, settings);
    if (!mistake.empty()) return Error{fmt::format("{}: {}", place, mistake)};
    const std::string proxies = proxy_mistake(listen);
    if (!proxies.empty()) return Error{fmt::format("{}: {}", place, proxies)};
  }
  TRY(check_http_tls(settings.http_tls, places));
  return check_http_access(settings, places);
}

// A name of the server as a Host has it, without its port.
bool is_host_name(std::string_view text) {
  return !text.empty() && text.back() != '.' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

Result<void> check_hosts(const Settings& settings, const Places& places) {
  const auto& hosts = settings.http.hosts;
  const auto wrong = std::ranges::find_if_not(hosts, is_host_name);
  if (wrong == hosts.end()) return {};
  return Error{
      fmt::format("{}: {} is not the name of a host, which has neither a scheme nor a port",
                  places.key("http.hosts"), config::in_quotes(*wrong))};
}

// "#1a7f4b".
bool is_hex_color(std::string_view text) {
  return text.size() == 7 && text.front() == '#' &&
         text.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string_view::npos;
}

Result<void> check_console(const Settings& settings, const Places& places) {
  using namespace config::types;
  const std::string& title = settings.http.title;
  const std::string& color = settings.http.color;
  if (title.size() > kMostTitleBytes) {
    return Error{fmt::format("{}: {} has {} bytes, more than {}", places.key("http.title"),
                             config::in_quotes(title), title.size(), kMostTitleBytes)};
  }
  if (color.empty() || is_hex_color(color) ||
      std::ranges::find(kHttpColors, color) != kHttpColors.end())
    return {};
  return Error{fmt::format("{}: {} is neither one of {} nor #rrggbb", places.key("http.color"),
                           config::in_quotes(color), fmt::join(kHttpColors, ", "))};
}

// A client has one role: no token, certificate or user is in two (see also access/identities.h).
Result<void> check_roles(const Settings& settings, const Places& places) {
  const auto check = [&](std::string_view key, auto member) -> Result<void> {
    std::map<std::string_view, std::string_view> role_of;
    for (std::size_t i = 0; i < settings.roles.size(); ++i) {
      const RoleSettings& role = settings.roles[i];
      for (const std::string& one : role.*member) {
        const auto [found, added] = role_of.emplace(one, role.role.name);
        if (added) continue;
        return Error{fmt::format("{}: role.{}: {} is in the role {} already", places.role(i), key,
                                 config::in_quotes(one), config::in_quotes(found->second))};
      }
    }
    return {};
  };
  for (std::size_t i = 0; i < settings.roles.size(); ++i) {
    const auto& tubes = settings.roles[i].role.tubes;
    const auto wrong = std::ranges::find_if_not(tubes, is_tube_pattern);
    if (wrong == tubes.end()) continue;
    return Error{fmt::format("{}: role.tubes: {} matches the name of no tube", places.role(i),
                             config::in_quotes(*wrong))};
  }
  TRY(check("tokens", &RoleSettings::tokens));
  TRY(check("subjects", &RoleSettings::subjects));
  TRY(check("users", &RoleSettings::users));
  return check("groups", &RoleSettings::groups);
}

// A server that obeys the test verbs of every client is not for other machines.
Result<void> check_test_mode(const CommandLine& line, const Settings& settings,
                             const Places& places) {
  if (!line.test_mode) return {};
  const auto refused = [](const std::string& place, const Listen& listen) {
    return Error{fmt::format("{}: {}: in test mode addresses are loopback or unix", place,
                             to_string(listen))};
  };
  for (std::size_t i = 0; i < settings.listeners.size(); ++i) {
    if (is_local(settings.listeners[i])) continue;
    return refused(places.listener(i), settings.listeners[i]);
  }
  if (settings.http_listen && !is_local(*settings.http_listen)) {
    return refused(places.key("http.listen"), *settings.http_listen);
  }
  return {};
}

Result<void> read_files(const std::string& config_file, Settings& settings,
                        config::FileLines& lines) {
  TRY(config::read_toml_file(config_file, settings, lines));
  const auto drop_ins = TRY(config::drop_in_files(config_file));
  for (const std::string& file : drop_ins) TRY(config::read_toml_file(file, settings, lines));
  return {};
}

}  // namespace

Result<LoadedSettings> load_with_lines(const CommandLine& line, bool cluster_built_in) {
  LoadedSettings loaded;
  Settings& settings = loaded.settings;
  config::FileLines& lines = loaded.lines;
  settings.listeners.clear();
  if (!line.config_file.empty()) TRY(read_files(line.config_file, settings, lines));
  if (line.test_mode) settings.log_level = LogLevel::error;
  apply_flags(line, settings);
  const Places places(line, lines);
  if (!cluster_built_in) TRY(config::refuse_cluster(line, settings, places));
  TRY(check_task(line, settings));
  TRY(check_journal(settings, places));
  TRY(choose_listeners(line, lines, settings));
  TRY(check_http(settings, places));
  TRY(check_listeners(settings, places));
  TRY(check_hosts(settings, places));
  TRY(check_console(settings, places));
  TRY(check_roles(settings, places));
  TRY(check_test_mode(line, settings, places));
  TRY(config::check_cluster(line, settings, places));
  if (settings.cluster.admin) settings.cluster.admin->mode = kClusterAdminMode;
  return loaded;
}

Result<Settings> load_settings(const CommandLine& line, bool cluster_built_in) {
  auto loaded = TRY(load_with_lines(line, cluster_built_in));
  return std::move(loaded.settings);
}

}  // namespace tubed
