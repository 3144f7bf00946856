#include "node/journal_writer.h"

#include <utility>

#include "journal/recovery.h"
#include "os/clock.h"
#include "os/process.h"
#include "serving/skipped_ids.h"

namespace tubed::node {

using disk::FileStorage;

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(loop::Loop& loop,
                                                           const std::string& directory,
                                                           std::uint64_t segment_bytes, Ids ids) {
  std::unique_ptr<JournalWriter> writer(new JournalWriter(loop));
  writer->storage_ = TRY(FileStorage::open(loop, directory, FileStorage::Mode::owner));
  FileStorage& storage = *writer->storage_;
  journal::IgnoreRecords records;
  auto found = TRY(journal::examine(storage, {}, records, nullptr));
  TRY(journal::repair(storage, found));
  writer->position_ = found.applied;
  const bool may_lack = storage.is_copy() || (!found.clean && storage.first_of_boot());
  const bool skips = ids == Ids::skip || (ids == Ids::as_recovered && may_lack);
  if (skips && !found.segments.empty()) found.next_job_id += serving::kSkippedIds;
  writer->journal_ = TRY(journal::Journal::open(storage, *writer,
                                                {.sync = {},
                                                 .segment_bytes = segment_bytes,
                                                 .directory = os::random_number(),
                                                 .clock = {},
                                                 .reservations = true},
                                                std::move(found)));
  return writer;
}

JournalWriter::~JournalWriter() {
  while (storage_ && storage_->busy()) loop_.run();
}

Result<void> JournalWriter::settle() {
  while (!error_ && journal_->durable() != journal_->appended()) {
    const bool more = journal_->flush();
    if (storage_->busy()) {
      loop_.run();
    } else if (!more && journal_->durable() != journal_->appended()) {
      return Error{"the journal cannot be written"};
    }
  }
  return error_ ? Result<void>(*error_) : Result<void>();
}

Result<void> JournalWriter::close() {
  TRY(settle());
  bool closed = false;
  journal_->close([&closed] { closed = true; });
  while (!closed && !error_) {
    journal_->flush();
    if (storage_->busy()) loop_.run();
  }
  if (error_) return *error_;
  // Skipped ids are on disk.
  storage_->record_boot();
  return {};
}

void JournalWriter::report_full(bool full, const std::string& reason) {
  if (full) error_ = Error{.message = reason, .kind = Error::Kind::no_space};
}

Time JournalWriter::now() const {
  return Time(os::wall_time());
}

}  // namespace tubed::node
