// The text of --help, from the rows of a program or subcommand.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "options/row.h"

namespace tubed::options {

struct HelpPage {
  std::string_view program;  // with its subcommand
  std::string_view description;
  std::span<const OptionRow> rows;
  const void* defaults = nullptr;  // the struct of the rows, with its defaults
  std::string_view arguments{};    // after the positional arguments of the rows
  std::string_view list{};         // after the options, as help_line() writes it
  std::string_view footer{};
};

// Many lines, with the last line end. O(rows²).
std::string help_text(const HelpPage& page);

// "  put                         Put a job\n"
std::string help_line(std::string_view name, std::string_view text);

}  // namespace tubed::options
