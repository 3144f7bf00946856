// AccessFiles: the certificates, keys and tokens that TLS and authentication read from files, at a
// start and at each reload. All files are read before anything changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "access/identities.h"
#include "base/result.h"
#include "config/settings.h"
#include "loop/tls_context.h"

namespace tubed::access {

using TlsPointer = std::shared_ptr<const loop::TlsContext>;  // null: without TLS

struct AccessFiles {
  std::vector<TlsPointer> listeners;  // by the index of settings.listeners
  TlsPointer http;
  TlsPointer nodes;  // of the cluster
  Identities identities;
  std::vector<std::string> complaints;  // of the settings
};

// Reads the files of the settings. The error is one line with the file and the reason.
Result<AccessFiles> load_access_files(const Settings& settings);

// The files that can be watched, each kind by a setting of its own.
enum class WatchedFiles : std::uint8_t { certificates, tokens };
// Reads one kind of files again; the others are those of `current`, which was made from the same
// settings. The error is one line with the file and the reason.
Result<AccessFiles> reload_access_files(const Settings& settings, const AccessFiles& current,
                                        WatchedFiles kind);
// Returns the paths of the files to watch: certificates, keys and authorities of all listeners and
// of the node, or the file of tokens. Empty if the settings say that this kind is not watched.
std::vector<std::string> watched_files(const Settings& settings, WatchedFiles kind);

// Returns warnings, one line for each certificate that is not valid at `wall_time` (since 1970),
// each token without a role, each role without its token, and each kind of identity that a role
// names but no listener asks for, or the other way round.
std::vector<std::string> complaints(const AccessFiles& files, Duration wall_time);

// Returns the settings whose files differ between `current` and `fresh`, each once:
// "listen.tls.certificate" (also if its key has changed), "listen.tls.client_ca", the same two of
// "http", "cluster.tls.certificate", "cluster.tls.ca", and "auth.tokens". Both have the same
// listeners.
std::vector<std::string> changed_files(const AccessFiles& current, const AccessFiles& fresh);

// Returns when the first certificate in use expires, since 1970; zero if no certificate is in use.
Duration first_expiry(const AccessFiles& files);

}  // namespace tubed::access
