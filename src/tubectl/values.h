// What the options of tubectl take as numbers, times and sizes, and what they answer otherwise.
//
// Each validator checks a value and writes it as a plain decimal number, which its option then
// reads: "5m" becomes "300". The error names the range and the units.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>

namespace tubed::tubectl {

// A whole number.
CLI::Validator is_count(std::uint64_t least,
                        std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
// A number, which may have a fraction.
CLI::Validator is_number(double least, double most);
// A time in whole seconds, as the protocol has them: 90, 90s, 5m, 2h, 1d.
CLI::Validator is_seconds(std::uint64_t most = std::numeric_limits<std::uint32_t>::max());
// A time in seconds, which may have a fraction: also 0.5 and 50ms.
CLI::Validator is_time(double least, double most);
// Bytes: 65535, 64KiB, 1GiB.
CLI::Validator is_size(std::uint64_t least, std::uint64_t most);

}  // namespace tubed::tubectl
