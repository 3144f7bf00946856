#include "access/access_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/planted.h"
#include "os/process.h"

namespace tubed::access {

namespace {

Result<TlsPointer> load_tls(const TlsSettings& settings, const char* alpn) {
  if (!settings.enabled()) return TlsPointer();
  loop::TlsOptions options;
  for (std::size_t i = 0; i < settings.certificates.size(); ++i) {
    const std::string& certificate = settings.certificates[i];
    options.certificates.push_back(
        {certificate, settings.keys.empty() ? certificate : settings.keys[i]});
  }
  options.client_ca = settings.client_ca;
  options.only_1_3 = settings.min_version == TlsVersion::v1_3;
  options.alpn = alpn;
  return loop::TlsContext::load(options);
}

Result<TlsPointer> load_node_tls(const ClusterSettings& cluster) {
  if (!cluster.enabled() || !cluster.tls.enabled()) return TlsPointer();
  loop::TlsOptions options;
  options.certificates.push_back({cluster.tls.certificate, cluster.tls.key});
  options.client_ca = cluster.tls.ca;
  options.mutual = true;
  TlsPointer context = TRY(loop::TlsContext::load(options));
  // No other node would accept it.
  if (const std::string name = "DNS:" + cluster.name; !context->has_name(name)) {
    return Error{fmt::format("{}: it has no alternative name {}, which cluster.name requires",
                             cluster.tls.certificate, name)};
  }
  return context;
}

// Calls visit(context) for each context in use.
template <class Visit>
void for_each_context(const AccessFiles& files, const Visit& visit) {
  for (const TlsPointer& context : files.listeners) {
    if (context != nullptr) visit(*context);
  }
  if (files.http != nullptr) visit(*files.http);
  if (files.nodes != nullptr) visit(*files.nodes);
}

// True if other machines may be able to use the API without authentication.
bool api_is_open(const Settings& settings) {
  const HttpApiSettings& http = settings.http;
  return http.api != HttpApiLevel::off && http.auth == AuthMode::none && http.role.empty() &&
         settings.http_listen && !is_local(*settings.http_listen);
}

bool uses(const Settings& settings, AuthMode mode) {
  return settings.http.auth == mode ||
         std::ranges::any_of(settings.listeners,
                             [&](const Listen& listen) { return listen.auth == mode; });
}

bool is_named_by_a_listener(const Settings& settings, const std::string& role) {
  return settings.http.role == role ||
         std::ranges::any_of(settings.listeners,
                             [&](const Listen& listen) { return listen.role == role; });
}

// Adds a complaint for each kind of identity that a role names but no listener asks for, and the
// other way round: then clients are refused, or have other limits than the settings suggest.
void add_unused(const Settings& settings, std::vector<std::string>& complaints) {
  struct Kind {
    AuthMode mode;
    std::string_view word;
    std::string_view key;
    bool (*has)(const RoleSettings&);
  };
  constexpr auto kKinds =
      std::to_array<Kind>({{AuthMode::token, "token", "tokens",
                            [](const RoleSettings& r) { return !r.tokens.empty(); }},
                           {AuthMode::mtls, "mtls", "subjects",
                            [](const RoleSettings& r) { return !r.subjects.empty(); }},
                           {AuthMode::peer, "peer", "users or groups", [](const RoleSettings& r) {
                              return !r.users.empty() || !r.groups.empty();
                            }}});
  for (const RoleSettings& role : settings.roles) {
    const std::string& name = role.role.name;
    bool has_clients = is_named_by_a_listener(settings, name);
    for (const Kind& kind : kKinds) {
      if (!kind.has(role)) continue;
      has_clients = true;
      if (uses(settings, kind.mode)) continue;
      complaints.push_back(
          fmt::format("role {}: {}, and no listener has auth = \"{}\"", name, kind.key, kind.word));
    }
    if (!has_clients)
      complaints.push_back(
          fmt::format("role {}: it names no client, and no listener has it", name));
  }
  for (const Kind& kind : kKinds) {
    if (uses(settings, kind.mode) && std::ranges::none_of(settings.roles, kind.has))
      complaints.push_back(fmt::format("auth = \"{}\", and no role has {}", kind.word, kind.key));
  }
  if (!settings.tokens.empty() && !uses(settings, AuthMode::token))
    complaints.emplace_back("auth.tokens, and no listener has auth = \"token\"");
}

Result<void> load_certificates(const Settings& settings, AccessFiles& files) {
  files.listeners.clear();
  for (const Listen& listen : settings.listeners)
    files.listeners.push_back(TRY(load_tls(listen.tls, "beanstalk")));
  files.http = TRY(load_tls(settings.http_tls, "http/1.1"));
  files.nodes = TRY(load_node_tls(settings.cluster));
  return {};
}

}  // namespace

Result<AccessFiles> load_access_files(const Settings& settings) {
  AccessFiles files;
  if (api_is_open(settings)) {
    files.complaints.push_back("http.api without http.auth on " + to_string(*settings.http_listen) +
                               (settings.http.api == HttpApiLevel::full
                                    ? ": each machine that can connect may change jobs"
                                    : ": each machine that can connect may read jobs"));
  }
  const bool by_peer = settings.http.auth == AuthMode::peer ||
                       std::ranges::any_of(settings.listeners, [](const Listen& one) {
                         return one.auth == AuthMode::peer;
                       });
  if (by_peer && !os::sees_all_users()) {
    files.complaints.emplace_back(
        "auth = \"peer\": the process does not see the users of its clients; see PrivateUsers= of "
        "its service");
  }
  TRY(load_certificates(settings, files));
  files.identities = TRY(Identities::load(settings));
  add_unused(settings, files.complaints);
  return files;
}

Result<AccessFiles> reload_access_files(const Settings& settings, const AccessFiles& current,
                                        WatchedFiles kind) {
  AccessFiles files = current;
  switch (kind) {
    case WatchedFiles::certificates:
      TRY(load_certificates(settings, files));
      break;
    case WatchedFiles::tokens:
      files.identities = TRY(Identities::load(settings));
      break;
  }
  return files;
}

std::vector<std::string> watched_files(const Settings& settings, WatchedFiles kind) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) {
    if (!path.empty()) paths.push_back(path);
  };
  if (kind == WatchedFiles::tokens) {
    if (settings.watch_tokens) add(settings.tokens);
    return paths;
  }
  if (!settings.watch_tls) return paths;
  const auto add_all = [&](const TlsSettings& tls) {
    for (const auto* files : {&tls.certificates, &tls.keys}) std::ranges::for_each(*files, add);
    add(tls.client_ca);
  };
  for (const Listen& listen : settings.listeners) add_all(listen.tls);
  add_all(settings.http_tls);
  if (settings.cluster.enabled()) {
    const ClusterTlsSettings& nodes = settings.cluster.tls;
    for (const auto* file : {&nodes.certificate, &nodes.key, &nodes.ca}) add(*file);
  }
  return paths;
}

std::vector<std::string> complaints(const AccessFiles& files, Duration wall_time) {
  std::set<std::string> lines;  // listeners may share a certificate
  for_each_context(files, [&](const loop::TlsContext& context) {
    for (std::string& line : context.complaints(wall_time)) lines.insert(std::move(line));
  });
  std::vector<std::string> result(lines.begin(), lines.end());
  for (const auto* others : {&files.identities.complaints(), &files.complaints})
    result.insert(result.end(), others->begin(), others->end());
  return result;
}

std::vector<std::string> changed_files(const AccessFiles& current, const AccessFiles& fresh) {
  if (TUBED_PLANTED(changed_files_are_not_logged)) return {};
  std::set<std::string> settings;
  const auto compare = [&](const TlsPointer& one, const TlsPointer& other,
                           const std::string& listener, const char* authorities) {
    if (one == nullptr || other == nullptr) return;  // the settings have changed
    if (!one->has_certificates_of(*other)) settings.insert(listener + ".tls.certificate");
    if (!one->has_authorities_of(*other)) settings.insert(listener + authorities);
  };
  const std::size_t listeners = std::min(current.listeners.size(), fresh.listeners.size());
  for (std::size_t i = 0; i < listeners; ++i)
    compare(current.listeners[i], fresh.listeners[i], "listen", ".tls.client_ca");
  compare(current.http, fresh.http, "http", ".tls.client_ca");
  compare(current.nodes, fresh.nodes, "cluster", ".tls.ca");
  if (!current.identities.has_tokens_of(fresh.identities)) settings.insert("auth.tokens");
  return {settings.begin(), settings.end()};
}

Duration first_expiry(const AccessFiles& files) {
  Duration first{};
  for_each_context(files, [&](const loop::TlsContext& context) {
    const Duration expires = context.expires();
    first = first == Duration::zero() ? expires : std::min(first, expires);
  });
  return first;
}

}  // namespace tubed::access
