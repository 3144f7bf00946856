// The options of tubectl as data: the rows of options/row.h, with the types of values that only
// tubectl has, and one Subcommand for each subcommand. command_line.cc parses the command line by
// these rows, and the help, the completions and the documentation are made from them.
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

// Each returns what is wrong with the value.
Result<void> check_addresses(std::string_view text);
Result<void> check_unix_socket(std::string_view text);
Result<void> check_tube(std::string_view text);
Result<void> check_job_id(std::string_view text);
Result<void> check_job_or_tube(std::string_view text);

// The address of a server, or several.
inline constexpr ValueType kAddresses{
    .kind = ValueType::Kind::text, .placeholder = "ADDRESS", .check = check_addresses};
// unix:PATH or an absolute path.
inline constexpr ValueType kUnixSocket{
    .kind = ValueType::Kind::file, .placeholder = "ADDRESS", .check = check_unix_socket};
// A tube's name [protocol: Name convention].
inline constexpr ValueType kTube{
    .kind = ValueType::Kind::tube, .placeholder = "TUBE", .check = check_tube};
// The id of a job, or "-" for ids on standard input.
inline constexpr ValueType kJobId{
    .kind = ValueType::Kind::text, .placeholder = "ID", .check = check_job_id};
// An id, "-" or the name of a tube; the subcommand decides later which it is.
inline constexpr ValueType kJobOrTube{
    .kind = ValueType::Kind::tube, .placeholder = "ID", .check = check_job_or_tube};

struct Server;

// A row of the table of subcommands. run() takes the options that make_options() has made.
struct Subcommand {
  std::string_view name;
  std::string_view group;  // the heading in the help of tubectl
  std::string_view summary;
  std::span<const OptionRow> options;
  std::string_view footer;  // of its help
  // The words after the subcommand, a line for each form; empty: made from the options.
  std::string_view usage{};

  // For a subcommand that runs a program: the words after the program, which are not options of
  // tubectl.
  std::vector<std::string>& (*program_arguments)(void* options) = nullptr;

  // Set by runs<>(), for a subcommand that contacts a server: the options of the connection, and
  // where they are stored. [server.h]
  std::span<const OptionRow> connection_options{};
  Server* (*server)(void* options) = nullptr;
  // Makes an options struct with its defaults.
  std::shared_ptr<void> (*make_options)() = nullptr;
  // Runs the subcommand and returns the exit code. An Error: the server is not reachable.
  Result<int> (*run)(void* options) = nullptr;
};

}  // namespace tubed::tubectl
