// Shared by the subcommands: rows of common options, the connection to the server, and printing of
// results and failures.
//
// A subcommand prints the reason of a failure by fail() or refused() and returns its exit code. It
// returns an Error only if the connection to the server is lost; the command line reports that with
// kExitUnavailable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "client/connection.h"
#include "text/numbers.h"
#include "tubectl/options.h"
#include "tubectl/server.h"

namespace tubed::tubectl {

// --- Options

inline constexpr OptionRow kMaxReplyOption{
    .names = "--max-reply",
    .type = size(0, client::kMaxReplyBytesCeiling),
    .help = "Take no larger reply from the server [256MiB]",
    .assign = [](void*, const std::vector<std::string>& values) {
      client::limit_replies(leading_number(values.front()));
    }};

template <auto kJson>
constexpr OptionRow json_option(std::string_view help = "Print JSON") {
  return option<kJson>({.names = "--json", .help = help});
}

template <auto kRaw>
constexpr OptionRow raw_option() {
  return option<kRaw>({.names = "--raw", .help = "Print bodies byte for byte on a terminal, too"});
}

// One tube, as an option or a word; several if the member is a vector.
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

// Jobs by id. With `takes_tube`, a word may also be the name of a tube.
template <auto kIds>
constexpr OptionRow ids_option(bool takes_tube = false, bool required = false) {
  return option<kIds>({.names = "ID",
                       .type = takes_tube ? kJobOrTube : kJobId,
                       .help = "Jobs; - stands for ids on standard input",
                       .required = required});
}

// Explains an unexpected reply, which may be a single word of the protocol. `not_found` is what
// NOT_FOUND means.
inline constexpr std::string_view kNoSuchJob = "there is no such job";
std::string meaning_of(const client::Reply& reply, std::string_view not_found = kNoSuchJob);
// True if the reply refuses access; repeating the command cannot help.
bool is_access_refusal(std::string_view line);
// Prints that `attempt` ("put") failed with this reply. Returns kExitFailure.
int refused(const std::string& attempt, const client::Reply& reply,
            std::string_view not_found = kNoSuchJob);
// Sends the command. Returns 0 if the first word of the reply is `expected`; otherwise prints the
// failure and returns kExitFailure. Required for use and watch: after a refusal the next command
// would go to the wrong tube.
Result<int> demand(client::Connection& connection, const std::string& command,
                   std::string_view expected);
// Returns 0 if the server has the capability, such as "delete-force"; otherwise prints that
// `attempt` failed because the server does not know `form`, and returns kExitFailure. Some servers
// answer unknown commands and forms with BAD_FORMAT, which does not name the reason.
Result<int> demand_capability(client::Connection& connection, std::string_view attempt,
                              std::string_view capability, std::string_view form);
// As demand_capability(), for a time argument. Returns 0 for whole seconds, which every server
// takes.
Result<int> demand_time(client::Connection& connection, std::string_view attempt,
                        std::chrono::milliseconds time);
inline constexpr std::string_view kMillisecondsCapability = "time:ms";
inline constexpr std::string_view kMillisecondsForm = "times in milliseconds";
// Returns the size in bytes of the largest job that the server accepts; a larger job need not be
// read. Returns a Reply if the server refuses to report it.
Result<std::variant<std::uint64_t, client::Reply>> ask_largest_job(client::Connection& connection);

// "there is no tube mail"; with a hint if the name is the id of a job.
std::string no_such_tube(std::string_view tube);

// Prints the reason on stderr, on one line, and returns `code`.
int fail(int code, const std::string& reason);
// Writes `text` to standard output. Returns 0, or the exit code after printing the error.
int print(std::string_view text);

struct Printed {
  std::string output;
  std::string errors;  // lines, with their beginning "tubectl: "
};

// While it exists, print() and fail() append to `printed`, and write nothing. At most one exists at
// a time.
class Capture {
 public:
  explicit Capture(Printed& printed);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
};

}  // namespace tubed::tubectl
