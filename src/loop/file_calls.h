// FileCalls: the blocking system calls of FileStorage on one open file. For any thread.
//
// `path` is the path of `file`, for the reason of an error. The outcomes are those of
// journal/storage.h; no_space means ENOSPC, EDQUOT, EFBIG, EMFILE or ENFILE.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "journal/storage.h"

namespace tubed::loop {

// The outcome of a call that has just set errno. `operation`: what was attempted, for example
// "write of /journal/x at 64".
journal::Outcome failure(const std::string& operation);

// Repeats a system call until no signal interrupts it.
template <class Call>
auto retry_eintr(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// Makes the bytes of a file durable. Never no_space: after a failed sync the kernel may have
// dropped the bytes, and reports that only once, so a second attempt would succeed without them.
journal::Outcome sync_file(int file, const std::string& path);
// The same for a new file. no_space is possible, because the caller removes the file then.
journal::Outcome sync_new_file(int file, const std::string& path);
// Makes the names in a directory durable.
journal::Outcome fsync_directory(int directory, const std::string& path);

// Writes all pieces, in order, from `offset` on.
journal::Outcome write_all(int file, const std::string& path, std::uint64_t offset,
                           std::span<const std::string_view> pieces);
// The same, and makes these bytes durable, without waiting for other bytes of the file that are
// only in the cache, such as zeros ahead. no_space: the same call can be repeated, also if it was
// the sync that lacked space. Precondition: all earlier writes to the file are synced, except zeros
// ahead.
journal::Outcome write_synced(int file, const std::string& path, std::uint64_t offset,
                              std::span<const std::string_view> pieces);
// Allocates disk space for the bytes from `from`, the end of the file, up to `to`; they read as
// zeros. `fill`: also writes and syncs the zeros, as it does where fallocate() is not supported.
journal::Outcome allocate_range(int file, const std::string& path, std::uint64_t from,
                                std::uint64_t to, bool fill);
// Durably replaces the first `bytes` bytes by `head` and zeros, and truncates the file there.
journal::Outcome overwrite(int file, const std::string& path, std::string_view head,
                           std::uint64_t bytes);
// Durably sets the length to `bytes`. no_space: the length is unchanged, and the contents are
// durable.
journal::Outcome truncate_file(int file, const std::string& path, std::uint64_t bytes);

// Renames a file unless the new name exists, like renameat2 with RENAME_NOREPLACE: returns 0, or -1
// and sets errno.
int rename_noreplace(int from_directory, const char* from, int to_directory, const char* to);

}  // namespace tubed::loop
