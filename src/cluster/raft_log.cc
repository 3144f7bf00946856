#include "cluster/raft_log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

// The steps are numbered in raft_log.h.
namespace tubed::cluster {

namespace {

using journal::Outcome;

// At this size a batch takes no further entries, so a long backlog is acknowledged in parts.
constexpr std::uint64_t kBatchBytes = 4 << 20;

}  // namespace

RaftLog::RaftLog(journal::Storage& storage, RaftLogHost& host, const RaftLogOptions& options)
    : context_{.storage = storage, .host = host, .options = options}, files_(context_) {}

Result<std::unique_ptr<RaftLog>> RaftLog::open(journal::Storage& storage, RaftLogHost& host,
                                               const RaftLogOptions& options) {
  auto found = TRY(examine_raft_log(storage, options.cluster));
  TRY(repair_raft_log(storage, found));
  std::unique_ptr<RaftLog> log(new RaftLog(storage, host, options));
  TRY(log->files_.adopt(found));
  log->take(std::move(found));
  return log;
}

void RaftLog::take(FoundRaftLog found) {
  cut_at_open_ = std::move(found.cut);
  entries_.restart_at(found.first);
  for (Entry& entry : found.entries) entries_.add(std::move(entry));
  stored_ = last();
  next_write_ = last() + 1;
  next_batch_ = found.next_batch;
  sealed_ = found.sealed;
}

// --- Step 1

void RaftLog::append(Index first, std::span<const Entry> entries) {
  TUBED_ASSERT(first >= this->first() && first <= last() + 1);
  TUBED_ASSERT(!context_.closing && !context_.failed);
  truncate(first);
  for (const Entry& entry : entries) {
    TUBED_ASSERT(entry.term != 0);
    entries_.add(entry);
  }
}

void RaftLog::truncate(Index first) {
  entries_.drop_from(first);
  if (first < next_write_) {
    next_write_ = first;
    truncated_ = true;
  }
  stored_ = std::min(stored_, first - 1);
  flight_.valid = std::min(flight_.valid, first - 1);
}

// Step 5.
void RaftLog::cut(Index first) {
  first = std::min({first, stored_ + 1, last() + 1});
  entries_.drop_before(first);
  files_.cut(this->first());
  context_.host.request_flush();
}

Result<void> RaftLog::reset(Index base) {
  TUBED_ASSERT(idle() && !context_.closing && !context_.failed);
  // The batch may be partly on disk. It must be complete before another follows.
  if (refused_) {
    return Error{.message = "a write of the Raft log waits for space",
                 .kind = Error::Kind::no_space};
  }
  auto result =
      files_.reset({.number = next_batch_, .first = base + 1, .cluster = context_.options.cluster});
  if (!result) {
    if (result.error().kind != Error::Kind::no_space) context_.fail(result.error().message);
    return result;
  }
  ++next_batch_;
  entries_.restart_at(base + 1);
  next_write_ = base + 1;
  stored_ = base;
  truncated_ = false;
  sealed_ = true;
  wanted_ = 0;
  context_.host.request_flush();
  return {};
}

// --- Steps 2 to 4

void RaftLog::flush() {
  if (!context_.failed) {
    write_next();
    files_.go_on(context_.host.now(), wanted_);
    const bool storing = writing_ || refused_ || has_unwritten();
    storing_since_ = storing ? std::min(storing_since_, context_.host.now()) : kNever;
  }
  go_on_closing();
}

Time RaftLog::next_deadline() const {
  if (context_.failed || context_.closing) return kNever;
  return std::min(refused_ ? retry_at_ : kNever, files_.retry_at());
}

void RaftLog::write_next() {
  if (writing_) return;
  if (refused_) {
    if (context_.closing || context_.host.now() < retry_at_) return;
    refused_ = false;
    return write();
  }
  wanted_ = 0;
  if (has_unwritten()) return write_entries();
  if (!std::exchange(seal_wanted_, false) || sealed_ || !begin_batch(kRaftBatchHeaderBytes)) return;
  finish_batch(last());
  write();
}

// Takes as many entries as fit, and at least one unless the change is only a truncation.
void RaftLog::write_entries() {
  Index next = next_write_;
  const std::uint64_t least = next <= last() ? record_bytes(at(next)) : 0;
  if (!begin_batch(kRaftBatchHeaderBytes + least)) return;
  for (; next <= last(); ++next) {
    const Entry& entry = at(next);
    const std::uint64_t bytes = flight_.batch.bytes() + record_bytes(entry);
    if (bytes > flight_.place.room || (bytes > kBatchBytes && next > next_write_)) break;
    flight_.batch.add(next, entry);
  }
  finish_batch(next - 1);
  write();
}

// Returns false if no file has room for this many bytes.
bool RaftLog::begin_batch(std::uint64_t bytes) {
  const auto place = files_.place_for(bytes);
  wanted_ = place ? 0 : bytes;
  if (!place) return false;
  flight_.place = *place;
  return true;
}

void RaftLog::finish_batch(Index last) {
  flight_.first = next_write_;
  flight_.last = flight_.valid = last;
  flight_.batch.finish({.offset = flight_.place.offset,
                        .number = next_batch_,
                        .first = next_write_,
                        .cluster = context_.options.cluster},
                       flight_.place.number);
  ++next_batch_;
  next_write_ = last + 1;
  truncated_ = false;
}

void RaftLog::write() {
  writing_ = true;
  context_.storage.write(flight_.place.file, flight_.place.offset, flight_.batch.pieces(),
                         journal::Sync::yes, [this](const Outcome& outcome) { written(outcome); });
}

void RaftLog::written(const Outcome& outcome) {
  writing_ = false;
  context_.host.request_flush();
  if (!context_.continues_after(outcome)) return;
  if (!outcome.ok()) {
    refused_ = true;
    retry_at_ = context_.host.now() + kRaftLogRetry;
    return files_.refuse_write(outcome.reason);
  }
  files_.accept_write();
  storing_since_ = kNever;
  sealed_ = flight_.batch.entries() == 0;
  files_.written(flight_.place.number, flight_.place.offset + flight_.batch.bytes(), flight_.first,
                 flight_.batch.entries());
  flight_.batch.clear();
  const Index stored = std::min(flight_.last, flight_.valid);
  if (stored > stored_) {
    stored_ = stored;
    context_.host.entries_stored(stored_, term_of(stored_));
  }
}

// --- The end

void RaftLog::close(std::function<void()> closed) {
  TUBED_ASSERT(!context_.closing);
  context_.closing = true;
  closed_ = std::move(closed);
  seal_wanted_ = true;
  context_.host.request_flush();
}

void RaftLog::go_on_closing() {
  if (!context_.closing || !idle() || !closed_) return;
  std::exchange(closed_, nullptr)();
}

}  // namespace tubed::cluster
