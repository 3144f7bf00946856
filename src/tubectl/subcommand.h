// A subcommand of tubectl: one file each, and one row in command_line.cc.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace tubed::tubectl {

struct Subcommand {
  const CLI::App* app = nullptr;
  std::function<int()> run;  // when it was asked for; returns the exit code
};

// Each adds itself to `parent`.
Subcommand add_bench(CLI::App& parent);

// Tells why on stderr, in one line, and returns `code`.
int fail(int code, const std::string& reason);

}  // namespace tubed::tubectl
