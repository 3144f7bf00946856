#include "tubectl/commands/command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "client/stats_block.h"
#include "client/system_error.h"
#include "client/times.h"
#include "facts/types.h"
#include "protocol/reply.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/capabilities.h"
#include "tubectl/jobs/ids.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

constexpr std::string_view kDenied = "DENIED";
constexpr std::string_view kUnauthorized = "UNAUTHORIZED";

// Each message is followed by the protocol's word in parentheses, for scripts and logs to search.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kMeanings{{
    {word::kBuried, "the server had no memory to queue the job, and has buried it"},
    {word::kDraining, "the server is draining: it takes no jobs"},
    {word::kOutOfMemory, "the server has no room"},
    {word::kJobTooBig, "the job is larger than the server takes"},
    {word::kTimedOut, "nothing came in time"},
    {word::kDeadlineSoon, "a job that is held is about to run out of time"},
    {kDenied, "the role of this client does not permit it"},
    {kUnauthorized, "the server requires a token: use --token-file"},
    {"ALREADY_RESERVED", "another client holds it"},
    {word::kBadFormat, "the server does not understand it"},
    {word::kUnknownCommand, "the server does not know that command"},
}};

// Where print() and fail() append; null: they write.
Printed* captured = nullptr;

}  // namespace

Capture::Capture(Printed& printed) {
  TUBED_ASSERT(captured == nullptr);
  captured = &printed;
}

Capture::~Capture() {
  captured = nullptr;
}

int fail(int code, const std::string& reason) {
  if (captured != nullptr) {
    captured->errors += fmt::format("tubectl: {}\n", reason);
    return code;
  }
  StatusLine::clear_shown();
  std::fprintf(stderr, "tubectl: %s\n", reason.c_str());
  return code;
}

std::string meaning_of(const client::Reply& answer, std::string_view not_found) {
  if (answer.is(word::kNotFound)) return fmt::format("{} ({})", not_found, answer.line);
  if (answer.is("INSERTED")) {
    return fmt::format("job {} has its unique key ({})", answer.number(), answer.line);
  }
  const auto meaning = std::ranges::find(kMeanings, answer.word(),
                                         &std::pair<std::string_view, std::string_view>::first);
  return meaning == kMeanings.end() ? fmt::format("the server answered \"{}\"", answer.line)
                                    : fmt::format("{} ({})", meaning->second, answer.line);
}

std::string no_such_tube(std::string_view tube) {
  const std::string hint =
      id_of(tube) ? fmt::format("; the job with this id: tubectl job {}", tube) : "";
  return fmt::format("there is no tube {}{}", tube, hint);
}

bool is_access_refusal(std::string_view line) {
  return line == kDenied || line == kUnauthorized;
}

int refused(const std::string& attempt, const client::Reply& answer, std::string_view not_found) {
  return fail(kExitFailure, fmt::format("{}: {}", attempt, meaning_of(answer, not_found)));
}

Result<int> demand(client::Connection& connection, const std::string& command,
                   std::string_view due) {
  const auto answer = TRY(connection.ask(command));
  return answer.is(due) ? 0 : refused(command, answer);
}

Result<int> demand_capability(client::Connection& connection, std::string_view attempt,
                              std::string_view capability, std::string_view form) {
  const auto server = TRY(Capabilities::of(connection));
  if (server.has(capability)) return 0;
  return fail(kExitFailure, fmt::format("{}: the server does not know {}", attempt, form));
}

Result<int> demand_time(client::Connection& connection, std::string_view attempt,
                        std::chrono::milliseconds time) {
  if (!client::has_milliseconds(time)) return 0;
  return demand_capability(connection, attempt, kMillisecondsCapability, kMillisecondsForm);
}

// If the server does not report its limit, returns the largest limit that a server can have; the
// server itself then refuses a job that is too large.
Result<std::variant<std::uint64_t, client::Reply>> ask_largest_job(client::Connection& connection) {
  using SizeOrRefusal = std::variant<std::uint64_t, client::Reply>;
  auto answer = TRY(connection.ask("stats"));
  if (!answer.is("OK")) return SizeOrRefusal(std::move(answer));
  return SizeOrRefusal(
      client::StatsBlock(answer.body).number("max-job-size").value_or(kMaxJobBytesCeiling));
}

// Flushes because a full disk or a closed pipe shows only then.
int print(std::string_view text) {
  if (captured != nullptr) {
    captured->output += text;
    return 0;
  }
  StatusLine::clear_shown();
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return 0;
  }
  return fail(kExitIo, client::system_error("cannot write to standard output").message);
}

}  // namespace tubed::tubectl
