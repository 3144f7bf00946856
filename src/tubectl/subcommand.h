// A subcommand of tubectl: one file each, and one row in command_line.cc.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "tubectl/client.h"

namespace tubed::tubectl {

struct Subcommand {
  const CLI::App* app = nullptr;
  // When it was asked for; returns the exit code. An Error: there is no server any more.
  std::function<Result<int>()> run;
};

// Each adds itself to `parent`.
Subcommand add_bench(CLI::App& parent);

// --- What they share

// Where the server is, as -s, --server or TUBED_SERVER say.
struct Server {
  std::string text = "127.0.0.1:11300";
};
// Adds -s, --server; what it is given is checked when the command line is read.
void add_server_option(CLI::App& app, Server& server);
// Precondition: the command line was read.
Result<Client> connect(const Server& server);

// Adds --json.
void add_json_flag(CLI::App& app, bool& json);
// Lets an option take only a tube's name. [protocol: Name convention]
CLI::Validator is_tube();

// Tells why on stderr, in one line, and returns `code`.
int fail(int code, const std::string& reason);
// The server's answer is not the one that was due: says so, in words where the protocol has only a
// word, and returns kExitFailure. "put": what was attempted.
int refused(const std::string& attempt, const Answer& answer);
// Writes it all to standard output; returns 0, or says why not.
int print(std::string_view text);

}  // namespace tubed::tubectl
