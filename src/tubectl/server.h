// Server: how a subcommand reaches its server. runs<>() gives the options of a connection to a
// subcommand whose options have a member `server`.
//
// When the command line is parsed, check() checks the options together; before the subcommand runs,
// prepare() reads the files that they name. The subcommand itself only connects.
#pragma once

#include <array>
#include <span>
#include <string>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/options.h"

namespace tubed::tubectl {

struct Server {
  std::string text = "127.0.0.1:11300";  // from -s, --server or TUBED_SERVER
  bool tls = false;
  std::string ca;
  std::string certificate;
  std::string key;
  std::string server_name;
  std::string token_file;

  client::Target target;  // made by prepare()
};

inline constexpr OptionRow kServerOption =
    option<&Server::text>({.names = "-s,--server",
                           .type = kAddresses,
                           .help = "HOST, HOST:PORT, [IPV6]:PORT, unix:PATH or an absolute path; "
                                   "with TLS beanstalks://HOST:PORT. Of several HOST:PORT with "
                                   "commas between them, the first that serves",
                           .shows_default = true});

template <auto kServer>
constexpr OptionRow server_option() {
  OptionRow row = kServerOption;
  row.env = "TUBED_SERVER";
  return option<kServer, &Server::text>(row);
}

inline constexpr std::string_view kConnectionGroup = "To be admitted to the server";

// The other options of a connection. The path leads to a Server; an empty path starts there.
template <auto... kPath>
inline constexpr std::array kConnectionOptions{
    option<kPath..., &Server::tls>(
        {.names = "--tls", .help = "Use TLS, as beanstalks:// does", .group = kConnectionGroup}),
    option<kPath..., &Server::ca>({.names = "--ca",
                                   .type = kFile,
                                   .help = "Trust these CAs, in PEM, and not those of the system",
                                   .env = "TUBED_CA",
                                   .group = kConnectionGroup}),
    option<kPath..., &Server::certificate>({.names = "--cert",
                                            .type = kFile,
                                            .help = "Client certificate, in PEM, with its chain",
                                            .group = kConnectionGroup}),
    option<kPath..., &Server::key>({.names = "--key",
                                    .type = kFile,
                                    .help = "Its key, in PEM [the file of --cert]",
                                    .group = kConnectionGroup}),
    option<kPath..., &Server::server_name>(
        {.names = "--server-name",
         .type = text("NAME"),
         .help = "The server's certificate must be for this name [the host of the address]",
         .group = kConnectionGroup}),
    option<kPath..., &Server::token_file>({.names = "--token-file",
                                           .type = kFile,
                                           .help = "Authenticate with the token in this file",
                                           .env = "TUBED_TOKEN_FILE",
                                           .group = kConnectionGroup}),
};

// Fills in the functions of the subcommand, which runs kRun(Options&).
template <class Options, auto kRun>
constexpr Subcommand runs(Subcommand subcommand) {
  subcommand.make_options = [] { return std::shared_ptr<void>(std::make_shared<Options>()); };
  subcommand.run = [](void* options) -> Result<int> {
    return kRun(*static_cast<Options*>(options));
  };
  if constexpr (requires(Options options) { options.server; }) {
    subcommand.connection_options = kConnectionOptions<&Options::server>;
    subcommand.server = [](void* options) { return &static_cast<Options*>(options)->server; };
  }
  return subcommand;
}

// Fails, with a message for the user, if options contradict each other or the address.
// Precondition: the address is valid.
Result<void> check(const Server& server);
// Reads the files and makes `target`. Returns 0, or the exit code after printing the error.
// Precondition: check() has succeeded.
int prepare(Server& server);

// Precondition: prepare() has succeeded.
Result<client::Connection> connect(const Server& server, Duration timeout = client::kTimeout);

}  // namespace tubed::tubectl
