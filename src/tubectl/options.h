// The options of tubectl as data: the rows of options/row.h, with the types of values that only
// tubectl has, and one Subcommand for each subcommand. The command line is parsed by them
// (command_line.cc), and the help, the completions and the documentation are made from them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "options/row.h"

namespace tubed::tubectl {

using options::choice;
using options::count;
using options::kFile;
using options::milliseconds;
using options::number;
using options::option;
using options::OptionRow;
using options::seconds;
using options::size;
using options::text;
using options::time;
using options::ValueType;

// --- What an option takes

// Each says what is wrong with a value.
Result<void> check_address(std::string_view text);
Result<void> check_unix_socket(std::string_view text);
Result<void> check_tube(std::string_view text);
Result<void> check_job_id(std::string_view text);
Result<void> check_job_or_tube(std::string_view text);

// Where a server listens.
inline constexpr ValueType kAddress{
    .kind = ValueType::Kind::text, .placeholder = "ADDRESS", .check = check_address};
// unix:PATH or an absolute path.
inline constexpr ValueType kUnixSocket{
    .kind = ValueType::Kind::file, .placeholder = "ADDRESS", .check = check_unix_socket};
// A tube's name [protocol: Name convention].
inline constexpr ValueType kTube{
    .kind = ValueType::Kind::tube, .placeholder = "TUBE", .check = check_tube};
// A job's id, or "-" for ids on standard input.
inline constexpr ValueType kJobId{
    .kind = ValueType::Kind::text, .placeholder = "ID", .check = check_job_id};
// The same, or a tube's name; the subcommand decides later which one a word is.
inline constexpr ValueType kJobOrTube{
    .kind = ValueType::Kind::text, .placeholder = "ID", .check = check_job_or_tube};

// --- Subcommands

struct Server;

// A row of the table of subcommands. make_options() and run() are a pair: run() receives what
// make_options() has made.
struct Subcommand {
  std::string_view name;
  std::string_view group;  // the heading in the help of tubectl
  std::string_view summary;
  std::span<const OptionRow> options;
  std::string_view footer;  // of its help

  // Of a subcommand that runs a program: the words after it, which no option may be taken from.
  std::vector<std::string>& (*program_arguments)(void* options) = nullptr;

  // Filled in by runs<>(). [server.h]
  // Of a subcommand that contacts a server: how it is admitted, and where these options are stored.
  std::span<const OptionRow> connection_options{};
  Server* (*server)(void* options) = nullptr;
  // A new options struct, with its defaults.
  std::shared_ptr<void> (*make_options)() = nullptr;
  // Runs the subcommand and returns the exit code. An Error: the server is not reachable any more.
  Result<int> (*run)(void* options) = nullptr;
};

}  // namespace tubed::tubectl
