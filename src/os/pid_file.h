// PidFile: a file with the id of the serving process.
//
// The process holds a record lock on the file. Readers ask the kernel for the holder of the lock
// instead of trusting the contents, so a copy, or a file left by a crash, names no process.
//
// The file also carries two messages to `tubed --drain`, which opens it before they appear. Shells
// that read the file do not see them. The flag is one byte far beyond the contents; the process
// unlocks it to set the flag. The last words follow the process id after the path was removed. The
// locked range ends with the byte of the flag. tubed 2.0.0 leaves no messages and locks the whole
// file: the byte after the flag shows which kind of server holds the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::os {

class PidFile {
 public:
  // Creates the file or reuses an unlocked file, locks it and writes the id of this process. The
  // error is one line with the path and the reason, or with the process that holds the lock.
  static Result<std::unique_ptr<PidFile>> open(const std::string& path);
  // Removes the file if the path still leads to it and this user has the permission.
  ~PidFile();
  // Sets or clears the flag, which is initially clear. Errors are ignored.
  void set_flag(bool set);
  // Removes the file as the destructor does, and leaves a line for processes that have it open.
  void close_with(const std::string& last_words);
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// The pid file of another serving process.
class OtherPidFile {
 public:
  // The error is one line.
  static Result<OtherPidFile> open(const std::string& path);
  // The process that held the lock when the file was opened.
  std::uint64_t process() const { return process_; }
  // False if the process is a server of 2.0.0, which leaves no messages.
  bool has_flag() const { return has_flag_; }
  // Returns the flag, or nothing if the process no longer holds the file. Precondition: has_flag().
  std::optional<bool> flag() const;
  // Empty if the process has left no last words or has not ended.
  std::string last_words() const;

 private:
  OtherPidFile(Descriptor file, std::uint64_t process, bool has_flag)
      : file_(std::move(file)), process_(process), has_flag_(has_flag) {}

  Descriptor file_;
  std::uint64_t process_;
  bool has_flag_;
};

}  // namespace tubed::os
