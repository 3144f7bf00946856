// AccessFiles: what TLS and authentication read from files: certificates with their keys, and
// tokens. They are read at a start and at each reload, all of them before anything changes.
#pragma once

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
  Identities identities;
  std::vector<std::string> complaints;  // of the settings
};

// Reads the files of the settings. The error is one line with the file and the reason.
Result<AccessFiles> load_access_files(const Settings& settings);

// Warnings that do not refuse the files: one line for each certificate that is not valid at
// `wall_time` (since 1970), for each token without a role or role without its token, and for what
// roles name and no listener asks for, or the other way round.
std::vector<std::string> complaints(const AccessFiles& files, Duration wall_time);

// The settings whose files have other contents in `fresh` than in `current`:
// "listen.tls.certificate", also if its key has changed, "listen.tls.client_ca", the same two
// of "http", and "auth.tokens". Each once. Both are of the same listeners.
std::vector<std::string> changed_files(const AccessFiles& current, const AccessFiles& fresh);

// When the first certificate in use expires, since 1970. Zero: none is in use.
Duration first_expiry(const AccessFiles& files);

}  // namespace tubed::access
