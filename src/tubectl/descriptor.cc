#include "tubectl/descriptor.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace tubed::tubectl {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Error system_error(std::string attempt) {
  return {std::move(attempt) + ": " + std::strerror(errno)};
}

}  // namespace tubed::tubectl
