// The files to start from, etc/tubed.toml, packaging/doc/tubed.toml and packaging/tubed.toml, from
// the rows of config/table.h.
//
// The texts read back: loading them gives the settings they were made from.
#pragma once

#include <string>

namespace tubed::docs {

// A tubed.toml with every key commented out, its default and its meaning. It loads to the defaults.
std::string default_config();

// The same for the packages, which install it as documentation: the settings that their service
// needs are not commented out.
std::string packaged_config();

// The conffile of the packages: it loads to the same settings, but has only the keys that operators
// change most. It seldom changes, so that an upgrade seldom meets an edited file.
std::string conffile();

// A TLS listener with two roles, as TOML. It loads in a file that sets auth.tokens.
std::string tls_example();

}  // namespace tubed::docs
