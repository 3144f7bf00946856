#include "tubectl/system_error.h"

#include <cerrno>

#include "platform/descriptor.h"

namespace tubed::tubectl {

Error system_error(const std::string& attempt) {
  return {attempt + ": " + platform::error_text(errno)};
}

}  // namespace tubed::tubectl
