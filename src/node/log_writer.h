// LogWriter: writes a raft log into a new directory as the entries arrive. It blocks.
//
// Errors are one line. Not thread-safe; the entries belong to the caller's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "cluster/entry.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"
#include "disk/file_storage.h"
#include "facts/fact.h"
#include "loop/loop.h"

namespace tubed::node {

class LogWriter final : private cluster::RaftLogHost {
 public:
  // `loop` has no other events, runs during writes, and outlives the writer.
  LogWriter(loop::Loop& loop, std::string directory, const cluster::RaftLogOptions& options)
      : loop_(loop), directory_(std::move(directory)), options_(options) {}
  // Waits for running operations.
  ~LogWriter();

  // Creates the directory and a log whose first entry will be `first`.
  Result<void> open(cluster::Index first);
  // Returns the index of the next entry.
  cluster::Index next() const { return log_->last() + 1; }
  // Appends the entries, durably.
  Result<void> append(std::span<const cluster::Entry> entries);
  // Closes the log. Fails if it does not end at the position: another index or term, or other
  // entries before it (their chain).
  Result<void> finish(const Applied& position);

 private:
  Result<void> settle();
  bool take_chain(cluster::Index index, const cluster::Entry& entry);

  void entries_stored(cluster::Index /*last*/, cluster::Term /*term*/) override {}
  void request_flush() override {}
  void report_failure(const std::string& reason) override { error_ = Error{reason}; }
  void report_full(bool full, const std::string& reason) override;
  Time now() const override;

  loop::Loop& loop_;
  const std::string directory_;
  const cluster::RaftLogOptions options_;
  std::unique_ptr<disk::FileStorage> storage_;
  std::unique_ptr<cluster::RaftLog> log_;
  std::optional<cluster::Chain> chain_;  // after the last entry; known from the first entry of
                                         // facts
  std::optional<Error> error_;
};

}  // namespace tubed::node
