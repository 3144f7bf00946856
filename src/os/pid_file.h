// PidFile: a file that tells the id of the process that serves.
//
// The process keeps it locked, so that a file that is left over, or was copied, names nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::os {

class PidFile {
 public:
  // Makes or takes over the file, locks it and writes this process's id. The error says what is
  // wrong with the path, or who serves there already.
  static Result<std::unique_ptr<PidFile>> open(const std::string& path);
  // Removes the file, if it is still this one and this user may.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// The process that keeps the file.
Result<std::uint64_t> process_of_pid_file(const std::string& path);

}  // namespace tubed::os
