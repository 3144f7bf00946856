// tubectl token: makes a token, or prints a token's line for the server's token file. It contacts
// no server.
#include "tubectl/token.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kTokenFooter =
    R"(new makes a token of 32 random bytes. With --token-file the token is written to
that file, which must not exist, and only the line for the server is printed.
hash prints the line of a token that is in --token-file or on standard input.
The line goes into the file that the server's auth.tokens names; it has only the
SHA-256 of the token, from which the token cannot be computed.

examples:
  tubectl token new worker-1
  tubectl token new worker-2 --token-file worker.token
  tubectl token hash worker-2 --token-file worker.token)";

constexpr std::array<std::string_view, 2> kActions{"new", "hash"};

struct TokenOptions {
  std::string action;
  std::string name;
  std::optional<std::string> file;
  bool json = false;
};

// Prints `token` too, unless it is empty.
int print_line(const TokenOptions& options, const std::string& hash, const std::string& token) {
  if (options.json) {
    Json object{{"name", options.name}, {"hash", hash}};
    if (!token.empty()) object["token"] = token;
    return print(to_line(object) + "\n");
  }
  const std::string line = fmt::format("{} {}\n", options.name, hash);
  if (token.empty()) return print(line);
  return print(fmt::format("token: {}\nline for auth.tokens: {}", token, line));
}

int new_token(const TokenOptions& options) {
  const auto token = make_token();
  if (!token) return fail(kExitFailure, token.error().message);
  if (!options.file) return print_line(options, token_hash(*token), *token);
  if (const auto written = write_token(*options.file, *token); !written) {
    return fail(kExitIo, written.error().message);
  }
  return print_line(options, token_hash(*token), "");
}

Result<int> run_token(const TokenOptions& options) {
  if (!is_token_name(options.name)) {
    return fail(kExitUsage, fmt::format("\"{}\" is no name: it has 1 to 64 letters, digits, and "
                                        "- _ . @; try tubectl token --help",
                                        options.name));
  }
  if (options.action == kActions.front()) return new_token(options);
  const auto token = read_token(options.file.value_or("-"));
  if (!token) return fail(kExitBadInput, token.error().message);
  return print_line(options, token_hash(*token), "");
}

constexpr std::array kTokenOptions{
    option<&TokenOptions::action>({.names = "ACTION",
                                   .type = choice("ACTION", kActions),
                                   .help = "What to do; see below",
                                   .required = true}),
    option<&TokenOptions::name>({.names = "NAME",
                                 .type = text("NAME"),
                                 .help = "The name of the client, for the server",
                                 .required = true}),
    option<&TokenOptions::file>({.names = "--token-file",
                                 .type = kFile,
                                 .help = "Of new: write the token to this new file; of hash: "
                                         "read it from this file [standard input]"}),
    json_option<&TokenOptions::json>(),
};

}  // namespace

const Subcommand& token_command() {
  static constexpr Subcommand kCommand =
      runs<TokenOptions, run_token>({.name = "token",
                                     .group = kControlGroup,
                                     .summary = "Make a token for a client, or print its line",
                                     .options = kTokenOptions,
                                     .footer = kTokenFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
