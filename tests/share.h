// How much of a long test is run.
#pragma once

namespace tubed {

// A sanitizer makes each step many times as slow. Of places to cut, of seeds and of sizes a build
// with one tries each nineteenth, and a build without one tries all.
#ifdef TUBED_SANITIZED
inline constexpr unsigned kOneIn = 19;
#else
inline constexpr unsigned kOneIn = 1;
#endif

}  // namespace tubed
