// PidFile: a file with the id of the serving process.
//
// The process holds a record lock on the file. Readers ask the kernel for the holder of the lock
// and do not trust the contents, so a file that a crash has left, or a copy, names no process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::os {

class PidFile {
 public:
  // Creates the file or reuses an unlocked file, locks it and writes the id of this process. The
  // error is one line, with the path and the reason, or the process that holds the lock.
  static Result<std::unique_ptr<PidFile>> open(const std::string& path);
  // Removes the file if the path still leads to it and this user has the permission.
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// The id of the process that holds the lock on the file. The error is one line.
Result<std::uint64_t> process_of_pid_file(const std::string& path);

}  // namespace tubed::os
