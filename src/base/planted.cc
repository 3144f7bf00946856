#include "base/planted.h"

#ifdef TUBED_WITH_PLANTS

#include <cstdlib>
#include <cstring>

namespace tubed {

bool is_planted(const char* name) noexcept {
  static const char* const planted = std::getenv("TUBED_PLANT");
  return planted != nullptr && std::strcmp(planted, name) == 0;
}

}  // namespace tubed

#endif
