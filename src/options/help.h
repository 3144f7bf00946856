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
  // The words after the program's name, a line for each form; empty: made from the rows and
  // `arguments`.
  std::string_view usage{};
  std::string_view list{};  // after the options, as help_line() writes it
  // Lines that begin with a space are kept; the others are filled.
  std::string_view footer{};
};

// Many lines, with the last line end. Those made from rows have at most 80 columns, unless a word
// is longer. O(rows²).
std::string help_text(const HelpPage& page);

// The text of a row, which is one of `rows`, with its choices, its default and what it excludes.
// Also the beginning of its description in the manual page.
std::string row_text(const OptionRow& row, std::span<const OptionRow> rows, const void* defaults);

// "  put                     Put a job\n": as many lines as the text needs.
std::string help_line(std::string_view name, std::string_view text);

}  // namespace tubed::options
