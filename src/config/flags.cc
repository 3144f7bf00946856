// getopt_long(3) does the cutting: clusters of short flags, attached arguments and
// "--flag=argument" behave as in every other program. declared_flags() makes its tables from the
// rows. Three of its properties are changed: abbreviated long flags are refused, so that a new flag
// cannot change the meaning of an existing script; an argument that is no flag is an error; and its
// messages are replaced by messages that suggest a name.
#include "config/flags.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <getopt.h>

#include "config/value.h"
#include "text/suggestion.h"

namespace tubed::config {
namespace {

// One flag as getopt_long(3) needs it.
struct Declared {
  GivenFlag row;
  char short_flag = '\0';
  std::string long_flag;    // with its dashes, or empty
  std::string argument;     // its placeholder, or empty
  int takes = no_argument;  // as getopt_long(3) has it
};

std::vector<Declared> declared_flags() {
  std::vector<Declared> result;
  for (const auto& row : settings_table()) {
    result.push_back({{nullptr, &row, ""},
                      row.short_flag,
                      row.flag(),
                      placeholder(row.type),
                      required_argument});
  }
  for (const auto& row : options_table()) {
    result.push_back({{&row, nullptr, ""},
                      row.short_flag,
                      std::string(row.long_flag),
                      std::string(row.argument),
                      row.argument.empty()       ? no_argument
                      : row.argument_is_optional ? optional_argument
                                                 : required_argument});
  }
  return result;
}

// Runs getopt_long(3) over one command line; the first mistake ends it.
class Splitter {
 public:
  explicit Splitter(std::span<const char* const> args) : declared_(declared_flags()) {
    arguments_.push_back(nullptr);  // the place of the program's name, which is not read
    // getopt_long(3) writes to no argument, and moves none when the short flags begin with '-'.
    for (const auto* arg : args) arguments_.push_back(const_cast<char*>(arg));
    arguments_.push_back(nullptr);
    for (std::size_t i = 0; i < declared_.size(); ++i) declare(declared_[i], i);
    long_flags_.push_back({});
  }

  Result<std::vector<GivenFlag>> split() {
    const int count = static_cast<int>(arguments_.size()) - 1;
    std::vector<GivenFlag> given;
    opterr = 0;  // getopt_long(3) prints no error of its own
    optind = 0;  // and begins a new command line
    while (true) {
      const int at = std::max(optind, 1);
      const int found =
          getopt_long(count, arguments_.data(), short_flags_.c_str(), long_flags_.data(), nullptr);
      if (found == kEnd && at == count) return given;
      const std::string_view argument = arguments_[static_cast<std::size_t>(at)];
      if (found == kEnd || found == kNoFlag) return Error{unknown(argument)};
      const bool failed = found == '?' || found == ':';
      const auto* flag = declared(failed ? optopt : found);
      if (!flag || !is_whole_name(argument, *flag)) return Error{unknown_flag_in(argument)};
      if (found == ':') return Error{missing_argument(*flag)};
      if (found == '?') return Error{fmt::format("{} takes no argument", flag->long_flag)};
      given.push_back(flag->row);
      if (flag->takes != no_argument && optarg != nullptr) given.back().text = optarg;
    }
  }

 private:
  // getopt_long(3) returns the letter of a short flag, kFirstLong plus the index of a long flag,
  // '?' for an unknown flag or a switch with an argument, ':' for a missing argument, or:
  static constexpr int kEnd = -1;         // the end of the arguments, or "--"
  static constexpr int kNoFlag = 1;       // an argument that does not begin with '-'
  static constexpr int kFirstLong = 256;  // above every letter

  void declare(const Declared& flag, std::size_t index) {
    if (flag.short_flag) short_flags_ += flag.short_flag;
    if (flag.short_flag && flag.takes != no_argument) short_flags_ += ':';
    if (flag.long_flag.empty()) return;
    long_flags_.push_back(
        {flag.long_flag.c_str() + 2, flag.takes, nullptr, kFirstLong + static_cast<int>(index)});
  }

  // Null if `found` is no flag's letter.
  const Declared* declared(int found) const {
    if (found >= kFirstLong) return &declared_[static_cast<std::size_t>(found - kFirstLong)];
    const auto is_short = [&](const Declared& flag) {
      return flag.short_flag && flag.short_flag == found;
    };
    const auto flag = std::ranges::find_if(declared_, is_short);
    return flag == declared_.end() ? nullptr : &*flag;
  }

  // getopt_long(3) accepts an abbreviated long flag; tubed does not.
  static bool is_whole_name(std::string_view argument, const Declared& flag) {
    return !argument.starts_with("--") || argument.substr(0, argument.find('=')) == flag.long_flag;
  }

  static std::string missing_argument(const Declared& flag) {
    const auto name = flag.long_flag.empty() ? fmt::format("-{}", flag.short_flag) : flag.long_flag;
    return fmt::format("{}: 1 required {} missing", name, flag.argument);
  }

  // Of a cluster (-Vxy), the unknown letter and the rest are named.
  std::string unknown_flag_in(std::string_view argument) const {
    if (argument.starts_with("--")) return unknown(argument);
    const auto letter = argument.find(static_cast<char>(optopt), 1);
    const auto rest = argument.substr(std::min(letter, argument.size()));
    return unknown(rest.starts_with('-') ? std::string(argument) : fmt::format("-{}", rest));
  }

  std::string unknown(std::string_view argument) const {
    if (!argument.starts_with('-'))
      return fmt::format("unexpected argument {}", in_quotes(argument));
    const auto flag = argument.substr(0, argument.find('='));
    std::vector<std::string> candidates;
    for (const auto& known : declared_) {
      if (!known.long_flag.empty()) candidates.push_back(known.long_flag);
    }
    return fmt::format("unknown flag {}{}", printable(flag), suggestion(flag, candidates));
  }

  std::vector<Declared> declared_;
  std::vector<char*> arguments_;
  // '-': an argument that is no flag is returned in its place, as kNoFlag. ':': a missing argument
  // is returned as ':', not as '?'.
  std::string short_flags_ = "-:";
  std::vector<::option> long_flags_;  // their names are those of declared_
};

}  // namespace

Result<std::vector<GivenFlag>> split_flags(std::span<const char* const> args) {
  return Splitter(args).split();
}

}  // namespace tubed::config
