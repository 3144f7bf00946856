// How tubectl ends, as in <sysexits.h> where that has a word for it.
#pragma once

namespace tubed::tubectl {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 64;  // EX_USAGE

}  // namespace tubed::tubectl
