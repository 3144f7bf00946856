#include "journal/committer.h"

#include <algorithm>

// The steps are numbered in committer.h.
namespace tubed::journal {

namespace {

// From this size, a commit is not delayed.
constexpr std::uint64_t kMaxDelayedBytes = 256 << 10;

}  // namespace

bool Committer::waits(Time now) {
  if (context_.closing || appender_.pending_bytes() >= kMaxDelayedBytes) return false;
  return delay_.waits(appender_.appended() - submitted_, now, context_.options.syncs_each_commit());
}

// Step 2.
void Committer::begin() {
  appender_.take_pending(flight_.batches);
  flight_.next = 0;
  flight_.facts = appender_.appended() - submitted_;
  submitted_ = appender_.appended();
  close_segments();  // before the write: a file that no longer grows may block the next
  write();
}

// Steps 3 and 4. The write is synced in three cases:
// - The mode is `always`.
// - The batch has no facts. It may be the first in its segment, and synced() does not cover it;
//   older segments must not be removed before it is on disk.
// - It is the first commit after a start. If the log on disk ends with the mark of an orderly stop,
//   nothing was acknowledged after the mark.
void Committer::write() {
  CommitBatch& batch = flight_.batches[flight_.next];
  const auto file = preallocator_.file_for({batch.segment, batch.end_offset()});
  flight_.starved = !file || (catching_up_ && !closer_.is_oldest_open(batch.segment));
  if (flight_.starved) return;
  flight_.synced =
      context_.options.syncs_each_commit() || batch.header.facts == 0 || stats_.commits == 0;
  if (batch.version > preallocator_.version_of(batch.segment)) {
    return preallocator_.raise_version(batch.segment, batch.version,
                                       flight_.synced ? Sync::yes : Sync::no,
                                       [this](const Outcome& outcome) { version_raised(outcome); });
  }
  write_batch(*file);
}

void Committer::version_raised(const Outcome& outcome) {
  if (!context_.continues_after(outcome)) return;
  if (!outcome.ok()) return space_.refuse_write(outcome.reason);
  write();
}

void Committer::write_batch(FileId file) {
  CommitBatch& batch = flight_.batches[flight_.next];
  space_.accept_write();
  catching_up_ = false;
  const Time now = context_.host.now();
  if (flight_.next == 0) flight_.began = now;
  batch.header.durable = syncer_.synced();
  batch.header.written = context_.clock.to_wall(now);
  batch.records.finish(batch.header);
  context_.storage.write(file, batch.header.offset, batch.records.pieces(),
                         flight_.synced ? Sync::yes : Sync::no,
                         [this](const Outcome& outcome) { batch_written(outcome); });
}

// Steps 5 and 6.
void Committer::batch_written(const Outcome& outcome) {
  if (!context_.continues_after(outcome)) return;
  if (!outcome.ok()) return space_.refuse_write(outcome.reason);
  const CommitBatch& batch = flight_.batches[flight_.next];
  confirmed_ = batch.header.durable;
  syncer_.note_written(batch.segment, batch.end_lsn(), flight_.synced);
  ++flight_.next;
  close_segments();
  if (flight_.next < flight_.batches.size()) return write();
  end();
}

// Step 7.
void Committer::end() {
  durable_ = submitted_;
  if (flight_.batches.back().header.clean) mark_written_ = true;
  flight_.batches.clear();
  const Time now = context_.host.now();
  const Duration took = now - flight_.began;
  ++stats_.commits;
  stats_.times.add(took);
  stats_.facts.add(static_cast<std::int64_t>(flight_.facts));
  delay_.committed(flight_.facts, appender_.appended() - submitted_, took, now);
  syncer_.note_commit(now);
  context_.advance();
}

void Committer::go_on() {
  close_segments();
  if (flight_.starved) write();
}

std::optional<LogPlace> Committer::starved_at() const {
  if (!flight_.starved) return {};
  const CommitBatch& batch = flight_.batches[flight_.next];
  return LogPlace{batch.segment, batch.end_offset()};
}

// Closes the segments to which nothing more will be written. They wait while a sync runs.
void Committer::close_segments() {
  const bool head_is_oldest_open =
      preallocator_.empty() || preallocator_.first_segment() == liveness_.newest().sequence;
  if (head_is_oldest_open || syncer_.running()) return;
  const auto& pending = appender_.pending();
  if (flight_.next < flight_.batches.size()) {
    closer_.close_before(flight_.batches[flight_.next].segment);
  } else {
    closer_.close_before(pending.empty() ? liveness_.newest().sequence : pending.front().segment);
  }
}

}  // namespace tubed::journal
