// The options of a life as the words of a command line.
#pragma once

#include <string>
#include <string_view>

#include "tests/simulation/life.h"

namespace tubed::simulation {

// Reads a word such as `--clients=12`. False: no life has this option.
bool take_option(std::string_view word, LifeOptions& options);

// The words of the options that are not as in LifeOptions(), each after a blank. They leave out
// what the life shows.
std::string words_of(const LifeOptions& options);

}  // namespace tubed::simulation
