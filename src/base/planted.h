// Planted faults: a build for tests can put a mended or feared fault back, so that a test shows
// that it finds the fault (tests/planted/CMakeLists.txt).
//
//   if (TUBED_PLANTED(name)) …    // the fault
//
// TUBED_PLANTED(name) is the constant false, except in builds with the option TUBED_PLANTS, which
// no package and no release has. There it is true while the environment variable TUBED_PLANT has
// the value `name`. tools/check-includes requires a scenario for each name, and refuses markers in
// headers, which have hot code.
#pragma once

#ifdef TUBED_WITH_PLANTS

namespace tubed {

// True if the fault `name` is planted. Reads the environment once.
bool is_planted(const char* name) noexcept;

}  // namespace tubed

#define TUBED_PLANTED(name) ::tubed::is_planted(#name)
#else
#define TUBED_PLANTED(name) false
#endif
