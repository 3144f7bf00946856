// The options of a life as words of a command line.
#pragma once

#include <string>
#include <string_view>

#include "tests/simulation/life.h"

namespace tubed::simulation {

// Reads a word such as `--clients=12`. Returns false if no life has this option.
bool take_option(std::string_view word, LifeOptions& options);

// Returns the words of the options that differ from LifeOptions(), each after a blank. Leaves out
// options that only affect output.
std::string words_of(const LifeOptions& options);

}  // namespace tubed::simulation
