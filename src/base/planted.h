// Planted faults: a build for tests can bring a fixed or a feared fault back, to show that a test
// finds it (tests/planted/CMakeLists.txt).
//
//   if (TUBED_PLANTED(name)) …    // the fault
//
// TUBED_PLANTED(name) is the constant false, except in builds with the option TUBED_PLANTS, which
// no package and no release uses. There it is true if the environment variable TUBED_PLANT is
// `name`. tools/check-includes requires a scenario for each name, and refuses markers in headers,
// because headers have hot code.
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
