// A transcript: a conversation of clients with a server, written as text, that a test plays.
// README.md has the syntax.
//
// Invariant: every Step::client is an index into Transcript::clients, which lists clients in the
// order of their first mention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "tests/wire/pattern.h"

namespace tubed::wire {

// Clients are numbered from 0 without gaps.
using Client = std::size_t;

enum class StepKind { send, receive, silent, closed, closes, half_closes, advance, drain };

struct Step {
  StepKind kind = StepKind::silent;
  std::size_t line = 0;  // in the file, from 1
  Client client = 0;     // not for advance and drain
  std::string sent;      // send
  Pattern expected;      // receive
  Duration time{};       // advance
  bool drain = false;    // drain
};

// Settings of the server under test; a setting without a value has the server's default.
struct Options {
  std::optional<std::uint64_t> job_bytes;
  std::optional<std::uint64_t> tubes;
  std::optional<std::uint64_t> job_memory;
  std::optional<std::uint64_t> watches;
  std::optional<std::uint64_t> policies;
};

struct Transcript {
  std::string file;
  std::string differs;    // the row of docs/compatibility.md; empty if beanstalkd agrees
  bool is_timed = false;  // a reply depends on how much time has passed
  bool needs_tubed = false;
  Options options;
  std::vector<std::string> clients;
  std::vector<Step> steps;
};

// Parses the text of `file`; the name is only for messages. An error reads `file:line: reason`.
Result<Transcript> parse(std::string_view file, std::string_view text);

// Reads and parses a file.
Result<Transcript> load(const std::string& path);

}  // namespace tubed::wire
