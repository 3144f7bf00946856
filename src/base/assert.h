// Assertions for bugs of the program itself. They stay on in release builds: a queue with a broken
// invariant must stop, not acknowledge further jobs.
#pragma once

namespace tubed {

// Prints the broken claim to stderr and aborts.
[[noreturn]] void assertion_failed(const char* claim, const char* file, int line) noexcept;

}  // namespace tubed

#define TUBED_ASSERT(claim) \
  (__builtin_expect(!(claim), 0) ? ::tubed::assertion_failed(#claim, __FILE__, __LINE__) : void(0))
