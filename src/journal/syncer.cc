#include "journal/syncer.h"

#include <algorithm>

#include "base/assert.h"

namespace tubed::journal {

void Syncer::note_written(std::uint64_t segment, Lsn end, bool synced) {
  written_ = end;
  last_segment_ = segment;
  if (synced && closer_.is_oldest_open(segment)) synced_ = end;
}

void Syncer::note_commit(Time now) {
  if (context_.options.syncs_by_interval() && deadline_ == kNever && synced() < written_) {
    deadline_ = now + context_.options.sync;
  }
}

void Syncer::apply_options(bool becomes_always) {
  deadline_ = kNever;
  if (synced() >= written_) return;
  if (becomes_always) request();
  note_commit(context_.host.now());
}

void Syncer::flush(Time now) {
  if (deadline_ <= now) {
    deadline_ = kNever;
    request();
  }
  if (!wanted_ || running_ || context_.failed) return;
  if (synced() >= written_) {
    wanted_ = false;
    return;
  }
  // Older segments are synced when they are closed; this segment follows.
  if (!closer_.is_oldest_open(last_segment_)) return;
  const auto file = preallocator_.file_for({last_segment_, 0});
  TUBED_ASSERT(file);
  wanted_ = false;
  running_ = true;
  context_.storage.sync(*file, [this, end = written_](const Outcome& outcome) {
    running_ = false;
    if (context_.failed) return;
    if (!outcome.ok()) return context_.fail(outcome.reason);
    synced_ = std::max(synced_, end);
    context_.advance();
  });
}

}  // namespace tubed::journal
