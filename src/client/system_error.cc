#include "client/system_error.h"

#include <cerrno>

#include "os/descriptor.h"

namespace tubed::client {

Error system_error(const std::string& attempt) {
  return {attempt + ": " + os::error_text(errno)};
}

}  // namespace tubed::client
