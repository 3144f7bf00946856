#include "tubectl/directory_sync.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "client/system_error.h"
#include "os/descriptor.h"

namespace tubed::tubectl {

Result<void> sync_directory_of(const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string name = slash == file.npos ? "." : file.substr(0, slash + 1);
  const os::Descriptor directory(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory && ::fsync(directory.number()) == 0) return {};
  return client::system_error(fmt::format("cannot sync the directory {}", name));
}

}  // namespace tubed::tubectl
