// The command line of a benchmark program.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "options/help.h"
#include "options/parse.h"
#include "options/row.h"

namespace tubed::bench {

inline constexpr int kExitUsage = 64;

// Fills in `options`, the struct of the rows. Returns the exit code of a program that has nothing
// more to do: after --help, or after the reason of a mistake on standard error.
inline std::optional<int> take_command_line(std::string_view program, std::string_view description,
                                            std::span<const options::OptionRow> rows, int argc,
                                            const char* const* argv, void* options) {
  const std::span<const char* const> words(argv + std::min(argc, 1), argv + std::max(argc, 0));
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  const auto parsed = options::parse(rows, words, environment, options);
  if (!parsed) {
    fmt::print(stderr, "{}: {}; try {} --help\n", program, parsed.error().message, program);
    return kExitUsage;
  }
  if (!parsed->wants_help) return std::nullopt;
  fmt::print(
      "{}",
      options::help_text(
          {.program = program, .description = description, .rows = rows, .defaults = options}));
  return 0;
}

}  // namespace tubed::bench
