// DirectoryLock: opens the directory of a FileStorage and locks it.
//
// file_storage.h describes the lock. The file `lock` also holds a short note about its last owner.
// An error is one line that names the directory; Error::Kind::denied means missing permissions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::disk {

inline constexpr const char* kLockName = "lock";
inline constexpr mode_t kFileMode = 0600;
inline constexpr mode_t kDirectoryMode = 0750;

// The user that owns new files in a directory. No value: the user of the process.
struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};
using NewOwner = std::optional<FileOwner>;

// Returns the owner of the directory if the process runs as root and the directory belongs to
// another user: that user could not open files that belong to root.
NewOwner owner_of_new_files(int directory);
// Gives a new file or directory to the owner. A root that may not do that keeps it.
void give(int file, const NewOwner& owner);

Result<os::Descriptor> open_directory(const std::string& path);
// Creates the directory if it does not exist, and syncs its parent. Fails if it is not empty.
// `is_part`: a directory made by root belongs to the owner of its parent.
Result<os::Descriptor> open_new_directory(const std::string& path, bool is_part);

// Locks the directory until the process closes any descriptor of the file `lock`. The directory
// must be readable and writable. A new file `lock` is given to `owner`. The error names the process
// that holds the lock.
Result<os::Descriptor> lock_directory(int directory, const std::string& path,
                                      const NewOwner& owner);

// Returns the note in the file `lock`, at most 64 bytes.
std::string read_note(const os::Descriptor& lock);
// Does not sync: the notes are boot ids, which change after a loss of power. If the disk is full,
// the note becomes empty.
void write_note(const os::Descriptor& lock, std::string_view note);

// Returns an error whose kind follows from the errno value.
Error error_of(std::string message, int error);

}  // namespace tubed::disk
