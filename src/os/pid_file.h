// PidFile: a file with the id of the serving process.
//
// The process holds a record lock on the file. Readers ask the kernel for the holder of the lock
// and do not trust the contents, so a file that a crash has left, or a copy, names no process.
//
// The file also passes two messages on to `tubed --drain`, which shells that read the file do not
// see: a flag, for which the process gives up the lock of one byte far beyond the contents, and
// last words, which follow the process id in the file after its path was removed. Readers have
// opened the file before. The lock ends with the byte of the flag. tubed 2.0.0, which leaves no
// messages, locks the whole file: the byte after the flag shows which of them holds the file.
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
  // error is one line, with the path and the reason, or the process that holds the lock.
  static Result<std::unique_ptr<PidFile>> open(const std::string& path);
  // Removes the file if the path still leads to it and this user has the permission.
  ~PidFile();
  // Sets or clears the flag, which is not set at the beginning. An error has no effect.
  void set_flag(bool set);
  // Removes the file as the destructor does, and leaves a line for those that have it open.
  void close_with(const std::string& last_words);
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
};

// The pid file of another process that serves.
class OtherPidFile {
 public:
  // The error is one line.
  static Result<OtherPidFile> open(const std::string& path);
  // The process that held the lock when the file was opened.
  std::uint64_t process() const { return process_; }
  // False: that process, a server of 2.0.0, leaves no messages.
  bool has_flag() const { return has_flag_; }
  // No value: that process holds the file no longer. Precondition: has_flag().
  std::optional<bool> flag() const;
  // Empty: the process has left none, or it has not ended.
  std::string last_words() const;

 private:
  OtherPidFile(Descriptor file, std::uint64_t process, bool has_flag)
      : file_(std::move(file)), process_(process), has_flag_(has_flag) {}

  Descriptor file_;
  std::uint64_t process_;
  bool has_flag_;
};

}  // namespace tubed::os
