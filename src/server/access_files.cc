#include "server/access_files.h"

#include <algorithm>
#include <set>

#include "os/process.h"

namespace tubed::server {

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

// Calls visit(context) for each that is in use.
template <class Visit>
void for_each_context(const AccessFiles& files, const Visit& visit) {
  for (const TlsPointer& context : files.listeners) {
    if (context != nullptr) visit(*context);
  }
  if (files.http != nullptr) visit(*files.http);
}

// True if other machines may be able to use the API without showing who they are.
bool api_is_open(const Settings& settings) {
  const HttpApiSettings& http = settings.http;
  return http.api != HttpApiLevel::off && http.auth == AuthMode::none && http.role.empty() &&
         settings.http_listen && !is_local(*settings.http_listen);
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
  for (const Listen& listen : settings.listeners)
    files.listeners.push_back(TRY(load_tls(listen.tls, "beanstalk")));
  files.http = TRY(load_tls(settings.http_tls, "http/1.1"));
  files.identities = TRY(Identities::load(settings));
  return files;
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

Duration first_expiry(const AccessFiles& files) {
  Duration first{};
  for_each_context(files, [&](const loop::TlsContext& context) {
    const Duration expires = context.expires();
    first = first == Duration::zero() ? expires : std::min(first, expires);
  });
  return first;
}

}  // namespace tubed::server
