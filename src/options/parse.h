// parse(): a command line against the rows of a program or subcommand.
//
// An option takes one value. An argument goes to the first positional row that has no value yet, or
// that takes several. A flag may have a value, as in --flag=true and --flag=no. An option whose
// value may be left out takes the next word if that is a value of its type: --watch 5, --watch=5.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "options/row.h"
#include "options/splitter.h"

namespace tubed::options {

// The value of a variable of the environment, as std::getenv() has it; null: it is not set.
using Environment = const char* (*)(const char* name);

enum class AfterArguments : bool {
  nothing_follows,    // more arguments than rows take are a mistake
  program_arguments,  // they and all words after them belong to a program that is run
};

struct Parsed {
  bool wants_help = false;  // then nothing was assigned
  std::vector<std::string> program_arguments;
};

// Assigns the values that the command line gives, or, for options that it does not have, the
// environment. A member without a value keeps its own. `options` is the struct of the rows; it is
// changed only if the command line is right. An Error is a line for the user. Of several mistakes
// it names the first of these:
//
// 1. An option without its value, or a flag with a text that is no truth value.
// 2. A value that is not right, in the order of the rows.
// 3. An unknown option.
// 4. A row that is missing, that another row needs, or that excludes another, in their order.
// 5. Arguments that are too many.
//
// --help wins over all but the first.
//
// Cost: proportional to words times rows. Not for two threads at once [Splitter].
Result<Parsed> parse(std::span<const OptionRow> rows, std::span<const char* const> words,
                     Environment environment, void* options,
                     AfterArguments after = AfterArguments::nothing_follows);

// How the splitter sees the rows, each at its place. A positional row has no names.
std::vector<Syntax> syntax_of(std::span<const OptionRow> rows);

}  // namespace tubed::options
