// RaftLogContext: the state shared by the parts of one Raft log: the disk, the host, the options,
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

// After this time an operation for which the disk had no room is retried.
inline constexpr Duration kRaftLogRetry{1'000'000'000};

// Returns the length of the files of a log of this maximum size: 1/64 of it, between 4 and 64 MiB.
// A log has two spare files, which its first start writes.
constexpr std::uint64_t raft_file_bytes(std::uint64_t log_bytes) {
  constexpr std::uint64_t kMiB = 1 << 20;
  constexpr std::uint64_t kPage = 4096;
  return std::clamp(log_bytes / 64 / kPage * kPage, 4 * kMiB, 64 * kMiB);
}

struct RaftLogOptions {
  // The size that the log should not exceed, for RaftLog::exceeds_bound(). Only cut() drops
  // entries.
  std::uint64_t log_bytes = 1 << 30;
  // The length of a file. A longer batch gets a file of its own.
  std::uint64_t file_bytes = raft_file_bytes(1 << 30);
  std::uint64_t cluster = 0;  // the cluster's identity
};

// Returns the options of a node's log according to its settings.
inline RaftLogOptions raft_log_options(std::uint64_t cluster, std::uint64_t log_bytes) {
  return {.log_bytes = log_bytes, .file_bytes = raft_file_bytes(log_bytes), .cluster = cluster};
}

// The program that runs the log. The functions are called within the log's own functions and
// completions of the storage, and may call append() and cut().
class RaftLogHost {
 public:
  // Every entry up to `last`, whose term is `term`, is on disk.
  virtual void entries_stored(Index last, Term term) = 0;
  // Something has changed: flush() should be called soon.
  virtual void request_flush() = 0;
  // Nothing more can be stored. Called once.
  virtual void report_failure(const std::string& reason) = 0;
  // The disk has become full, or is no longer full.
  virtual void report_full(bool full, const std::string& reason) = 0;
  // Returns the time of the tick.
  virtual Time now() const = 0;

 protected:
  ~RaftLogHost() = default;
};

// For a log that is only created or copied: ignores all calls.
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

  // Ends the log: nothing more is stored. Only the first failure is reported to the host.
  void fail(const std::string& reason) {
    if (!std::exchange(failed, true)) host.report_failure(reason);
  }
  // Returns false if the part that receives this outcome must stop, because this or an earlier
  // operation has failed. A lack of space is not a failure.
  bool continues_after(const journal::Outcome& outcome) {
    if (!failed && outcome.kind == journal::Outcome::Kind::failed) fail(outcome.reason);
    return !failed;
  }
};

}  // namespace tubed::cluster
