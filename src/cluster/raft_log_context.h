// RaftLogContext: everything that the parts of one Raft log share: the disk, the host, the options,
// and whether the log is closing or has failed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

// After which time an operation is tried again that the disk had no room for.
inline constexpr Duration kRaftLogRetry{1'000'000'000};

// The length of the files of a log that should have at most that size: 1/64 of it, between 4 and
// 64 MiB. A log has two spare files, so that this is what its first start writes.
constexpr std::uint64_t raft_file_bytes(std::uint64_t log_bytes) {
  constexpr std::uint64_t kMiB = 1 << 20;
  constexpr std::uint64_t kPage = 4096;
  return std::clamp(log_bytes / 64 / kPage * kPage, 4 * kMiB, 64 * kMiB);
}

struct RaftLogOptions {
  // The size that the log should have at most. For RaftLog::exceeds_bound(); entries are dropped by
  // cut() alone.
  std::uint64_t log_bytes = 1 << 30;
  // The length of a file; a batch that is longer gets a file of its own.
  std::uint64_t file_bytes = raft_file_bytes(1 << 30);
  std::uint64_t cluster = 0;  // the cluster's identity
};

// Of the log of a node, as its settings have it.
inline RaftLogOptions raft_log_options(std::uint64_t cluster, std::uint64_t log_bytes) {
  return {.log_bytes = log_bytes, .file_bytes = raft_file_bytes(log_bytes), .cluster = cluster};
}

// The program that runs the log, as the log sees it. The functions are called from within the log's
// own functions and from completions of the storage, and may call append() and cut().
class RaftLogHost {
 public:
  // Every entry up to `last`, which has that term, is on the disk.
  virtual void entries_stored(Index last, Term term) = 0;
  // Something has changed: flush() is to be called soon.
  virtual void request_flush() = 0;
  // Nothing more can be stored. Called once.
  virtual void report_failure(const std::string& reason) = 0;
  // The disk is full, or no longer is.
  virtual void report_full(bool full, const std::string& reason) = 0;
  // The time of the tick.
  virtual Time now() const = 0;

 protected:
  ~RaftLogHost() = default;
};

// For a log that is only made or copied: it takes no notice.
class NullRaftLogHost final : public RaftLogHost {
 public:
  void entries_stored(Index /*last*/, Term /*term*/) override {}
  void request_flush() override {}
  void report_failure(const std::string& /*reason*/) override {}
  void report_full(bool /*full*/, const std::string& /*reason*/) override {}
  Time now() const override { return {}; }
};

struct RaftLogContext {
  journal::Storage& storage;
  RaftLogHost& host;
  RaftLogOptions options;
  bool closing = false;
  bool failed = false;

  // Ends the log: nothing is stored any more. The host hears of the first failure only.
  void fail(const std::string& reason) {
    if (!std::exchange(failed, true)) host.report_failure(reason);
  }
  // Whether the part that receives this outcome goes on: false after a failure, whether in this
  // operation or earlier. A lack of space is not a failure.
  bool continues_after(const journal::Outcome& outcome) {
    if (!failed && outcome.kind == journal::Outcome::Kind::failed) fail(outcome.reason);
    return !failed;
  }
};

}  // namespace tubed::cluster
