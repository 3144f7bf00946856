// JournalWriter: continues the journal of a directory without a server, for tasks. It blocks, and
// owns the directory meanwhile.
//
// It has no queue, so the journal is not compacted; a server does that later. Times are wall time.
// Errors are one line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "disk/file_storage.h"
#include "facts/fact.h"
#include "journal/journal.h"
#include "loop/loop.h"

namespace tubed::node {

class JournalWriter final : private journal::JournalHost {
 public:
  enum class Ids : std::uint8_t {
    keep,          // everything acknowledged is here, or follows
    as_recovered,  // like a server that starts in the directory
    skip,          // acknowledged jobs are known to be missing
  };

  // Recovers the journal, or creates it in an empty directory. `segment_bytes` is the size of new
  // segments. `loop` has no other events and outlives the writer.
  static Result<std::unique_ptr<JournalWriter>> open(loop::Loop& loop, const std::string& directory,
                                                     std::uint64_t segment_bytes, Ids ids);
  // Waits for running operations.
  ~JournalWriter();

  // The newest position in the journal. Nothing: it never belonged to a node.
  const std::optional<Applied>& position() const { return position_; }
  // Makes the next facts, up to `bytes` bytes of records, survive a crash together or not at all.
  // Precondition: at least one fact follows.
  void make_room(std::uint64_t bytes) { journal_->make_room(bytes); }
  FactSink& facts() { return *journal_; }
  // Writes the pending facts if they are many. Called between facts, to bound the memory.
  Result<void> settle_if_much() { return journal_->overloaded() ? settle() : Result<void>(); }
  // Closes the journal properly.
  Result<void> close();

 private:
  // Makes everything durable.
  Result<void> settle();

  explicit JournalWriter(loop::Loop& loop) : loop_(loop) {}

  void request_flush() override {}
  void report_failure(const std::string& reason) override { error_ = Error{reason}; }
  void report_full(bool full, const std::string& reason) override;
  bool describe_job(JobId /*id*/, FactSink& /*sink*/) override { return false; }
  void describe_delay(JobId /*id*/, FactSink& /*sink*/) override {}
  Time now() const override;
  journal::WallClock wall_clock() const override { return {}; }

  loop::Loop& loop_;
  std::unique_ptr<disk::FileStorage> storage_;
  std::unique_ptr<journal::Journal> journal_;
  std::optional<Applied> position_;
  std::optional<Error> error_;
};

}  // namespace tubed::node
