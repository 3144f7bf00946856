// FileCalls: the blocking system calls of FileStorage on one open file, for any thread.
//
// `path` is the path of `file`, for error messages. journal/storage.h defines the outcomes;
// no_space means ENOSPC, EDQUOT, EFBIG, EMFILE or ENFILE.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "journal/storage.h"

namespace tubed::disk {

// Returns the outcome of a call that has just set errno. `operation` describes the attempt, for
// example "write of /journal/x at 64".
journal::Outcome failure(const std::string& operation);

// Repeats a system call that a signal interrupts.
template <class Call>
auto retry_eintr(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// Makes the bytes of a file durable. Never returns no_space: after a failed sync the kernel may
// have dropped the bytes and reports that only once, so a retry would succeed without them.
journal::Outcome sync_file(int file, const std::string& path);
// The same for a new file. May return no_space, because the caller then removes the file.
journal::Outcome sync_new_file(int file, const std::string& path);
// Makes the names in a directory durable.
journal::Outcome fsync_directory(int directory, const std::string& path);

// Writes all pieces in order, from `offset`.
journal::Outcome write_all(int file, const std::string& path, std::uint64_t offset,
                           std::span<const std::string_view> pieces);
// Writes and syncs these bytes only; does not wait for other cached bytes of the file, such as
// zeros ahead. After no_space, even of the sync, the same call can be repeated. Precondition: all
// earlier writes to the file are synced, except zeros ahead.
journal::Outcome write_synced(int file, const std::string& path, std::uint64_t offset,
                              std::span<const std::string_view> pieces);
// Allocates disk space from `from`, the end of the file, up to `to`; the bytes read as zeros.
// `fill` also writes and syncs the zeros, which happens anyway where fallocate() is not supported.
journal::Outcome allocate_range(int file, const std::string& path, std::uint64_t from,
                                std::uint64_t to, bool fill);
// Durably replaces the first `bytes` bytes by `head` and zeros, and truncates the file there.
journal::Outcome overwrite(int file, const std::string& path, std::string_view head,
                           std::uint64_t bytes);
// Durably sets the length to `bytes`. After no_space the length is unchanged and the contents are
// durable.
journal::Outcome truncate_file(int file, const std::string& path, std::uint64_t bytes);

// Renames a file unless the new name exists, like renameat2(2) with RENAME_NOREPLACE. Returns 0, or
// -1 with errno.
int rename_noreplace(int from_directory, const char* from, int to_directory, const char* to);

}  // namespace tubed::disk
