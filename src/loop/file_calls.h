// FileCalls: what FileStorage does to one file that is open, with blocking calls, on any thread.
//
// An outcome's reason names the path that is given with the descriptor.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "journal/storage.h"

namespace tubed::loop {

// The failure that errno is, of `what`, as in "write of /journal/x at 64".
journal::Outcome failure(const std::string& what);

template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// Durability: the kernel may drop what it could not write and report it only once, so a failed sync
// is never `no_space`, which invites to try again.
journal::Outcome sync_file(int file, const std::string& path);
// Of a file whose contents may go again: no_space it may be.
journal::Outcome sync_new_file(int file, const std::string& path);
journal::Outcome sync_folder(int folder, const std::string& path);

journal::Outcome write_all(int file, const std::string& path, std::uint64_t offset,
                           std::span<const std::string_view> pieces);
// Syncs what it writes and nothing else: what others have in the same file's cache meanwhile, zeros
// ahead for example, need not be waited for. no_space: to write and sync the same once more makes
// up for it, also if it was the sync that had no space. Precondition: what was written to the file
// before is synced, but for zeros ahead.
journal::Outcome write_synced(int file, const std::string& path, std::uint64_t offset,
                              std::span<const std::string_view> pieces);
// Not posix_fallocate(): where the file system cannot, glibc writes one byte a block, which leaves
// holes when it is wrong about the block, and reads what others may be writing.
// `fill`: with zeros that the disk has.
journal::Outcome reserve(int file, const std::string& path, std::uint64_t from, std::uint64_t to,
                         bool fill);
// Replaces its first `bytes` bytes by `head` and zeros, and cuts it there, durably.
journal::Outcome overwrite(int file, const std::string& path, std::string_view head,
                           std::uint64_t bytes);
// Cuts it to `bytes`, durably. no_space: it has kept its length, and is durable all the same.
journal::Outcome cut(int file, const std::string& path, std::uint64_t bytes);

// Gives a file another name, which nothing has; as renameat2.
int rename_to_free(int from_folder, const char* from, int to_folder, const char* to);

}  // namespace tubed::loop
