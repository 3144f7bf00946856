#include "client/system_error.h"

#include <cerrno>

#include "os/descriptor.h"

namespace tubed::client {

Error system_error(const std::string& attempt) {
  const int number = errno;
  const bool denied = number == EACCES || number == EPERM;
  return {attempt + ": " + os::error_text(number),
          denied ? Error::Kind::denied : Error::Kind::other};
}

}  // namespace tubed::client
