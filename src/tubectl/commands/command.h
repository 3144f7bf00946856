// Shared by the subcommands: rows of common options, the connection to the server, and how results
// and failures are printed.
//
// A subcommand returns its exit code, after it has printed the reason of a failure by fail() or
// refused(). It returns an Error only if the connection to the server is lost, which the command
// line reports with kExitUnavailable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/options.h"
#include "tubectl/server.h"

namespace tubed::tubectl {

// --- Options

inline constexpr OptionRow kMaxReplyOption{
    .names = "--max-reply",
    .type = size(0, client::kMaxReplyBytesCeiling),
    .help = "Take no larger reply from the server [256MiB]",
    .assign = [](void*, const std::vector<std::string>& values) {
      client::limit_replies(options::detail::parsed<std::uint64_t>(values.front()));
    }};

template <auto kJson>
constexpr OptionRow json_option(std::string_view help = "Print JSON") {
  return option<kJson>({.names = "--json", .help = help});
}

template <auto kRaw>
constexpr OptionRow raw_option() {
  return option<kRaw>({.names = "--raw", .help = "Print bodies byte for byte on a terminal, too"});
}

// One tube, as an option or a word; or several, if the member is a vector.
template <auto kTubes>
constexpr OptionRow tube_option_or_word(std::string_view help, bool required = false) {
  return option<kTubes>(
      {.names = "-t,--tube,TUBE", .type = kTube, .help = help, .required = required});
}

template <auto kPriority>
constexpr OptionRow priority_option(std::string_view help) {
  return option<kPriority>({.names = "-p,--priority", .type = count(0, UINT32_MAX), .help = help});
}

template <auto kDelay>
constexpr OptionRow delay_option(std::string_view help) {
  return option<kDelay>({.names = "-d,--delay", .type = milliseconds(), .help = help});
}

// Jobs by their ids. With `takes_tube` a word may also be a tube's name.
template <auto kIds>
constexpr OptionRow ids_option(bool takes_tube = false, bool required = false) {
  return option<kIds>({.names = "ID",
                       .type = takes_tube ? kJobOrTube : kJobId,
                       .help = "Jobs; - stands for ids on standard input",
                       .required = required});
}

// --- The server

// The meaning of an unexpected reply, in words where the protocol has only a word.
// `not_found` is the meaning of NOT_FOUND.
inline constexpr std::string_view kNoSuchJob = "there is no such job";
std::string meaning_of(const client::Reply& reply, std::string_view not_found = kNoSuchJob);
// The reply refuses what this client may not do, whatever it repeats.
bool is_access_refusal(std::string_view line);
// Prints that `attempt` ("put") failed with this reply, and returns kExitFailure.
int refused(const std::string& attempt, const client::Reply& reply,
            std::string_view not_found = kNoSuchJob);
// Sends the command. Returns 0 if the reply's word is `expected`; else prints the failure and
// returns kExitFailure. For use and watch: after a refused use or watch, the next command would go
// to the wrong tube.
Result<int> demand(client::Connection& connection, const std::string& command,
                   std::string_view expected);
// Returns 0 if the server has this capability, such as "delete-force"; else prints that `attempt`
// failed because the server does not know `form`, and returns kExitFailure. For commands and forms
// that other servers lack: some of these answer BAD_FORMAT, which does not name the reason.
Result<int> demand_capability(client::Connection& connection, std::string_view attempt,
                              std::string_view capability, std::string_view form);
// The same for a time of a command. Returns 0 if the time is whole seconds, which any server takes.
Result<int> demand_time(client::Connection& connection, std::string_view attempt,
                        std::chrono::milliseconds time);
inline constexpr std::string_view kMillisecondsCapability = "time:ms";
inline constexpr std::string_view kMillisecondsForm = "times in milliseconds";
// The size in bytes of the largest job that the server accepts; a larger one need not be read. A
// Reply: the server refused to report it.
Result<std::variant<std::uint64_t, client::Reply>> ask_largest_job(client::Connection& connection);

// --- Output

// Prints the reason on stderr, in one line, and returns `code`.
int fail(int code, const std::string& reason);
// Writes `text` to standard output. Returns 0, or the exit code after printing why it could not.
int print(std::string_view text);

}  // namespace tubed::tubectl
