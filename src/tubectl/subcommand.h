// A subcommand of tubectl: one file each, and one row in command_line.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "client/connection.h"

namespace tubed::tubectl {

struct Subcommand {
  CLI::App* app = nullptr;
  // When it was asked for; returns the exit code. An Error: there is no server any more.
  std::function<Result<int>()> run;
};

// Each adds itself to `parent`.
Subcommand add_bench(CLI::App& parent);
Subcommand add_bury(CLI::App& parent);
Subcommand add_clear(CLI::App& parent);
Subcommand add_delete(CLI::App& parent);
Subcommand add_drain(CLI::App& parent);
Subcommand add_export(CLI::App& parent);
Subcommand add_import(CLI::App& parent);
Subcommand add_job(CLI::App& parent);
Subcommand add_kick(CLI::App& parent);
Subcommand add_move(CLI::App& parent);
Subcommand add_pause(CLI::App& parent);
Subcommand add_peek(CLI::App& parent);
Subcommand add_put(CLI::App& parent);
Subcommand add_release(CLI::App& parent);
Subcommand add_reserve(CLI::App& parent);
Subcommand add_stats(CLI::App& parent);
Subcommand add_top(CLI::App& parent);
Subcommand add_tubes(CLI::App& parent);
Subcommand add_undrain(CLI::App& parent);
Subcommand add_wait_idle(CLI::App& parent);
Subcommand add_work(CLI::App& parent);

// --- What they share

// Where the server is, as -s, --server or TUBED_SERVER say.
struct Server {
  std::string text = "127.0.0.1:11300";
};
// Adds -s, --server and --max-reply; what they are given is checked when the command line is read.
void add_server_option(CLI::App& app, Server& server);
// Precondition: the command line was read.
Result<client::Connection> connect(const Server& server);

// Adds --json.
void add_json_flag(CLI::App& app, bool& json);
// Adds --raw, of what prints bodies.
void add_raw_flag(CLI::App& app, bool& raw);
// Lets an option take only a tube's name. [protocol: Name convention]
CLI::Validator is_tube();
// Adds -t, --tube TUBE, which may be given again; TUBE... as words is the same.
CLI::Option* add_tubes(CLI::App& app, std::vector<std::string>& tubes, const std::string& meaning);

// "there is no option --dleay (did you mean --delay?)"
std::string no_such_option(const CLI::App& app, const std::string& word);
// Tells why on stderr, in one line, and returns `code`.
int fail(int code, const std::string& reason);
// An answer that was not the one that was due, in words where the protocol has only a word;
// `not_found` is what NOT_FOUND means there.
inline constexpr std::string_view kNoSuchJob = "there is no such job";
std::string meaning_of(const client::Reply& answer, std::string_view not_found = kNoSuchJob);
// Says so, and returns kExitFailure. "put": what was attempted.
int refused(const std::string& attempt, const client::Reply& answer,
            std::string_view not_found = kNoSuchJob);
// Asks, and returns 0 if the answer is the one that is due; else says so, and returns
// kExitFailure. For a use or a watch: what comes behind one that was refused would go to the wrong
// tube.
Result<int> demand(client::Connection& connection, const std::string& command,
                   std::string_view due);
// How many bytes of a job the server takes: what is larger need not be read. An Answer: the server
// refused to tell.
Result<std::variant<std::uint64_t, client::Reply>> ask_largest_job(client::Connection& connection);
// Writes it all to standard output; returns 0, or says why not.
int print(std::string_view text);

}  // namespace tubed::tubectl
