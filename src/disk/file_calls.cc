// write_synced() uses pwritev2() with RWF_DSYNC, which syncs only the given bytes. After an error,
// a second write without the flag shows whether the flag is unsupported or the sync failed.
//
// posix_fallocate() cannot replace fallocate(): on file systems without the operation, glibc writes
// one byte per block. That leaves holes if glibc is wrong about the block size, and reads bytes
// that another thread may be writing. Zeros are written instead.
#include "disk/file_calls.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/planted.h"
#include "os/descriptor.h"

namespace tubed::disk {

using journal::Outcome;

namespace {

bool is_lack_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE;
}

// Distinguishes a lack of descriptors from a full disk, because the remedies differ.
std::string text_of(int error) {
  if (!is_lack_of_descriptors(error) || TUBED_PLANTED(no_descriptor_is_a_full_disk))
    return os::error_text(error);
  return fmt::format("no descriptor is free, although the disk may have room: {} ({})",
                     error == EMFILE ? "raise the limit of open files (LimitNOFILE=, ulimit -n)"
                                     : "the machine has as many open files as fs.file-max allows",
                     os::error_text(error));
}

Outcome failure_of(int error, const std::string& operation) {
  // Like a full disk, a lack of descriptors is temporary and prevents the creation of files.
  const bool no_space = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {
      no_space || is_lack_of_descriptors(error) ? Outcome::Kind::no_space : Outcome::Kind::failed,
      fmt::format("{}: {}", operation, text_of(error))};
}

// The progress of a write.
struct WriteResult {
  int error = 0;             // errno; 0: everything was written
  std::uint64_t offset = 0;  // in the file, of the first unwritten byte

  bool ok() const { return error == 0; }
};

Outcome outcome_of(const WriteResult& written, const std::string& path) {
  if (written.ok()) return {};
  return failure_of(written.error, fmt::format("write of {} at {}", path, written.offset));
}

// Continues after short writes and takes more pieces than one call can. `flags` are passed to
// pwritev2().
WriteResult write_pieces(int file, std::uint64_t offset, std::span<const std::string_view> pieces,
                         int flags) {
  std::array<iovec, IOV_MAX> vectors;
  std::size_t written = 0;  // of pieces.front(), in bytes
  for (;;) {
    int count = 0;
    for (std::size_t i = 0; i < pieces.size() && count < IOV_MAX; ++i) {
      const std::string_view rest = i == 0 ? pieces[0].substr(written) : pieces[i];
      if (rest.empty()) continue;
      vectors[static_cast<std::size_t>(count++)] = {.iov_base = const_cast<char*>(rest.data()),
                                                    .iov_len = rest.size()};
    }
    if (count == 0) return {.offset = offset};
    const ssize_t result = retry_eintr(
        [&] { return ::pwritev2(file, vectors.data(), count, static_cast<off_t>(offset), flags); });
    if (result == 0) return {EIO, offset};  // prevents an endless loop
    if (result < 0) return {errno, offset};
    offset += static_cast<std::uint64_t>(result);
    written += static_cast<std::size_t>(result);
    while (!pieces.empty() && written >= pieces.front().size()) {
      written -= pieces.front().size();
      pieces = pieces.subspan(1);
    }
  }
}

}  // namespace

Outcome failure(const std::string& operation) {
  return failure_of(errno, operation);
}

Outcome sync_file(int file, const std::string& path) {
  if (retry_eintr([&] { return ::fdatasync(file); }) == 0) return {};
  Outcome outcome = failure("sync of " + path);
  outcome.kind = Outcome::Kind::failed;
  return outcome;
}

Outcome sync_new_file(int file, const std::string& path) {
  if (retry_eintr([&] { return ::fsync(file); }) == 0) return {};
  return failure("sync of " + path);
}

Outcome fsync_directory(int directory, const std::string& path) {
  if (retry_eintr([&] { return ::fsync(directory); }) == 0) return {};
  return failure("sync of the directory " + path);
}

Outcome write_all(int file, const std::string& path, std::uint64_t offset,
                  std::span<const std::string_view> pieces) {
  return outcome_of(write_pieces(file, offset, pieces, 0), path);
}

namespace {

Outcome write_zeros(int file, const std::string& path, std::uint64_t from, std::uint64_t to) {
  static constexpr std::array<char, 64 * 1024> kZeros{};
  while (from < to) {
    const std::string_view piece(kZeros.data(), std::min<std::uint64_t>(to - from, kZeros.size()));
    if (Outcome outcome = write_all(file, path, from, {&piece, 1}); !outcome.ok()) return outcome;
    from += piece.size();
  }
  return {};
}

}  // namespace

Outcome write_synced(int file, const std::string& path, std::uint64_t offset,
                     std::span<const std::string_view> pieces) {
  const WriteResult synced = write_pieces(file, offset, pieces, RWF_DSYNC);
  Outcome outcome = outcome_of(synced, path);
  if (outcome.ok() || outcome.kind == Outcome::Kind::no_space) return outcome;
  Outcome plain = write_all(file, path, offset, pieces);
  if (!plain.ok()) return plain;
  if (synced.error == EOPNOTSUPP) return sync_file(file, path);
  outcome.kind = Outcome::Kind::failed;
  return outcome;
}

Outcome allocate_range(int file, const std::string& path, std::uint64_t from, std::uint64_t to,
                       bool fill) {
  if (from == to) return {};
  const auto call = [&] {
    return ::fallocate(file, 0, static_cast<off_t>(from), static_cast<off_t>(to - from));
  };
  const bool reserved = retry_eintr(call) == 0;
  if (reserved && !fill) return {};
  if (!reserved && errno != EOPNOTSUPP && errno != ENOSYS) {
    return failure(fmt::format("allocation of {} from {} to {}", path, from, to));
  }
  if (Outcome outcome = write_zeros(file, path, from, to); !outcome.ok()) return outcome;
  return sync_file(file, path);  // some file systems allocate the space only here
}

Outcome overwrite(int file, const std::string& path, std::string_view head, std::uint64_t bytes) {
  Outcome outcome = write_all(file, path, 0, {&head, 1});
  if (outcome.ok()) outcome = write_zeros(file, path, head.size(), bytes);
  if (!outcome.ok()) return outcome;
  const auto call = [&] { return ::ftruncate(file, static_cast<off_t>(bytes)); };
  if (retry_eintr(call) != 0) return failure(fmt::format("truncation of {} to {}", path, bytes));
  return sync_new_file(file, path);
}

Outcome truncate_file(int file, const std::string& path, std::uint64_t bytes) {
  const auto call = [&] { return ::ftruncate(file, static_cast<off_t>(bytes)); };
  if (retry_eintr(call) == 0) return sync_file(file, path);
  Outcome outcome = failure(fmt::format("truncation of {} to {}", path, bytes));
  if (outcome.kind == Outcome::Kind::failed) return outcome;
  Outcome synced = sync_file(file, path);
  return synced.ok() ? outcome : synced;
}

int rename_noreplace(int from_directory, const char* from, int to_directory, const char* to) {
  const int result = ::renameat2(from_directory, from, to_directory, to, RENAME_NOREPLACE);
  if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
  // The file system does not support the flag. The lock on the directory keeps other processes from
  // taking the name in the meantime.
  if (::faccessat(to_directory, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return -1;
  }
  return ::renameat(from_directory, from, to_directory, to);
}

}  // namespace tubed::disk
