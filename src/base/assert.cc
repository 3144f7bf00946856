#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace tubed {

void assertion_failed(const char* claim, const char* file, int line) noexcept {
  std::fprintf(stderr, "tubed: %s:%d: assertion failed: %s\n", file, line, claim);
  std::abort();
}

}  // namespace tubed
