#include "journal/journal.h"

#include <algorithm>

#include "base/assert.h"

namespace tubed::journal {

namespace {

// More than this waiting to be written, and no more is taken in.
constexpr std::uint64_t kMaxPendingBytes = 4 << 20;

// So much is worth a sync of its own.
constexpr std::uint64_t kMaxGatheredBytes = 256 << 10;

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(Storage& storage, JournalHost& host,
                                               const Options& options, Examined found) {
  const std::vector<FoundSegment> segments = found.segments;
  const std::size_t current = found.current;
  std::vector<FileId> files;
  for (std::size_t i = current; i < segments.size(); ++i) {
    auto file = TRY(storage.open(segment_name(segments[i].sequence)));
    files.push_back(file);
  }
  const bool torn = found.cut.has_value();
  std::unique_ptr<Journal> journal(new Journal(storage, host, options, std::move(found)));
  for (std::size_t i = current; i < segments.size(); ++i) {
    const bool was_cut = torn && i == current;
    journal->preallocator_.adopt(segments[i].sequence, files[i - current],
                                 was_cut ? segments[i].used_bytes : segments[i].file_bytes);
  }
  return journal;
}

Journal::Journal(Storage& storage, JournalHost& host, const Options& options, Examined found)
    : FactLog(found.next_lsn),
      storage_(storage),
      host_(host),
      options_(options),
      clock_(options.clock),
      directory_(found.segments.empty() ? options.directory : found.directory),
      liveness_(std::move(found.liveness)),
      preallocator_(storage, directory_),
      head_{liveness_.newest().sequence, liveness_.newest().used_bytes},
      submitted_(appended_),
      written_(appended_),
      synced_(appended_),
      next_job_id_(found.next_job_id) {
  closed_bytes_ = liveness_.used_bytes() - liveness_.newest().used_bytes;
  for (std::size_t i = 0; i < found.current; ++i) {
    const FoundSegment& left = found.segments[i];
    if (left.file_bytes == left.used_bytes) continue;
    untrimmed_[left.sequence] = left.file_bytes - left.used_bytes;
    closed_bytes_ += left.file_bytes - left.used_bytes;
  }
  preallocator_.set_sizes({.segment_bytes = options.segment_bytes, .chunk_bytes = chunk_bytes()});
}

void Journal::set_options(const Options& options) {
  const bool becomes_always = options.sync == Duration() && options_.sync != Duration();
  if (becomes_always) catching_up_ = true;
  options_ = options;
  slack_ = 0;
  // What was written under the old mode is owed the new one's sync.
  sync_at_ = kNever;
  if (synced_ < written_ && becomes_always) sync_wanted_ = true;
  if (synced_ < written_ && syncs_by_interval()) sync_at_ = host_.now() + options_.sync;
  preallocator_.set_sizes({.segment_bytes = options.segment_bytes, .chunk_bytes = chunk_bytes()});
  if (full_) retry_at_ = host_.now();
}

// --- Facts

void Journal::fact(const Fact& fact) {
  TUBED_ASSERT(!stopped_);
  if (!std::exchange(clock_is_read_, true)) set_clock(host_.wall_clock());
  const std::uint64_t bytes = record_bytes(fact);
  client_bytes_ += bytes;
  ++records_written_;
  append(fact, bytes);
}

void Journal::append(const Fact& fact, std::uint64_t record_bytes) {
  use_slack(record_bytes);
  Part& part = part_for(record_bytes);
  part.batch.add(fact, clock_);
  head_.end = part.end();
  part.end_number = ++appended_;
  pending_bytes_ += record_bytes;
  liveness_.apply(fact, record_bytes);
  next_job_id_ = std::max(next_job_id_, id_used_by(fact) + 1);
  part.jobs = liveness_.jobs();
}

// The pending part that the next record joins: the last one, or a new one behind it, in the next
// segment if the record does not fit into this one.
Journal::Part& Journal::part_for(std::uint64_t record_bytes) {
  bool joins = !pending_.empty();
  const std::uint64_t needed = record_bytes + (joins ? 0 : kBatchHeaderBytes);
  if (head_.end + needed > preallocator_.limit_of(head_.segment) &&
      head_.end > kSegmentHeaderBytes) {
    joins = false;
    ends_.push_back(appended_);
    head_ = {head_.segment + 1, kSegmentHeaderBytes};
    slack_ = 0;
    liveness_.open_segment(head_.segment, kSegmentHeaderBytes);
  }
  if (joins) return pending_.back();
  pending_.push_back({.segment = head_.segment,
                      .offset = head_.end,
                      .number = appended_,
                      .next_job_id = next_job_id_,
                      .batch = Batch(seed_of(head_.segment)),
                      .end_number = appended_,
                      .jobs = liveness_.jobs()});
  head_.end += kBatchHeaderBytes;
  use_slack(kBatchHeaderBytes);
  liveness_.use(kBatchHeaderBytes);
  pending_bytes_ += kBatchHeaderBytes;
  return pending_.back();
}

bool Journal::congested() const {
  // While the disk has not said no, puts must not take what is kept back before it has had its say.
  if (pending_bytes_ > kMaxPendingBytes || starved_ || refused_) return true;
  if (full_) return compaction_comes_first();
  if (slack_ > 0) return false;
  const std::uint64_t free = free_bytes();
  const std::uint64_t reserve = reserve_bytes();
  slack_ = static_cast<std::int64_t>(free - reserve) - slack_kept_back();
  return free < reserve;
}

bool Journal::flush() {
  clock_is_read_ = false;
  if (failed_ || stop_written_) return false;
  const Time now = host_.now();
  if (retry_at_ <= now) {
    retry_at_ = kNever;
    if (refused_) write_part();
  }
  bool more = false;
  if (!committing_now_) {
    if (!pending_.empty() && commit_waits(now)) {
      more = true;
    } else {
      if (!stopped_ && compaction_wanted()) more = compact();
      if (rewriting_) more = rewrite_deadlines() || more;
      if (!pending_.empty()) begin_commit();
    }
  }
  drop_dead();
  if (sync_at_ <= now) {
    sync_at_ = kNever;
    sync_wanted_ = true;
  }
  sync_if_wanted();
  grow_if_needed();
  return more && !committing_now_;
}

bool Journal::commit_waits(Time now) {
  if (stopped_ || pending_bytes_ >= kMaxGatheredBytes) return false;
  return commit_delay_.waits(appended_ - submitted_, now, options_.sync == Duration());
}

Time Journal::next_deadline() const {
  return failed_ ? kNever : std::min(sync_at_, retry_at_);
}

void Journal::fail(const std::string& reason) {
  if (std::exchange(failed_, true)) return;
  host_.report_failure(reason);
}

// --- The commit

void Journal::begin_commit() {
  commit_.swap(pending_);
  pending_bytes_ = 0;
  part_index_ = 0;
  commit_facts_ = appended_ - submitted_;
  submitted_ = appended_;
  committing_now_ = true;
  leave_segments();  // what the log has left may be the room that the next part needs
  write_part();
}

void Journal::write_part() {
  Part& part = commit_[part_index_];
  const auto file = preallocator_.file_for({part.segment, part.end()});
  starved_ = !file || (catching_up_ && !is_oldest_unsynced(part.segment));
  if (starved_) return;
  refused_ = false;
  catching_up_ = false;
  part.says_durable = synced_;
  const Time now = host_.now();
  if (part_index_ == 0) commit_began_ = now;
  part.batch.finish({.directory = directory_,
                     .offset = part.offset,
                     .lsn = part.number,
                     .durable = part.says_durable,
                     .next_job_id = part.next_job_id,
                     .written = clock_.to_wall(now),
                     .facts = part.facts(),
                     .jobs = part.jobs,
                     .clean = part.clean});
  // Durability: with Sync::yes the reply's facts are on the disk when this is done. A batch without
  // facts may be all that a segment begins with, and synced_ does not tell of it: older segments
  // must not go before it is on the disk.
  // The first commit is synced in every mode: where the log on the disk ends with the mark of an
  // orderly stop, nothing was acknowledged after it.
  part.syncs = options_.sync == Duration() || part.facts() == 0 || commits_ == 0;
  storage_.write(*file, part.offset, part.batch.pieces(), part.syncs ? Sync::yes : Sync::no,
                 [this](const Outcome& outcome) { part_written(outcome); });
}

void Journal::part_written(const Outcome& outcome) {
  if (failed_) return;
  if (outcome.kind == Outcome::Kind::failed) return fail(outcome.reason);
  if (outcome.kind == Outcome::Kind::no_space) {
    refused_ = true;
    return no_space(outcome.reason);
  }
  const Part& part = commit_[part_index_];
  written_ = part.end_number;
  written_segment_ = part.segment;
  marked_ = part.says_durable;
  if (part.syncs && is_oldest_unsynced(part.segment)) synced_ = part.end_number;
  ++part_index_;
  leave_segments();
  if (part_index_ < commit_.size()) return write_part();
  commit_written();
}

void Journal::commit_written() {
  committing_now_ = false;
  durable_ = submitted_;
  if (commit_.back().clean) stop_written_ = true;
  commit_.clear();
  ++commits_;
  const Time now = host_.now();
  commit_times_.add(now - commit_began_);
  commit_records_.add(static_cast<std::int64_t>(commit_facts_));
  commit_delay_.committed(commit_facts_, appended_ - submitted_, now - commit_began_, now);
  if (syncs_by_interval() && sync_at_ == kNever && synced_ < written_) {
    sync_at_ = now + options_.sync;
  }
  go_on_stopping();
  host_.request_flush();
}

void Journal::sync_if_wanted() {
  if (!sync_wanted_ || syncing_ || failed_) return;
  if (synced_ >= written_) {
    sync_wanted_ = false;
    return;
  }
  // Trimming syncs what is older; then it is this one's turn.
  if (!is_oldest_unsynced(written_segment_)) return;
  const auto file = preallocator_.file_for({written_segment_, 0});
  TUBED_ASSERT(file);
  sync_wanted_ = false;
  syncing_ = true;
  storage_.sync(*file, [this, number = written_](const Outcome& outcome) {
    syncing_ = false;
    if (failed_) return;
    if (!outcome.ok()) return fail(outcome.reason);
    synced_ = std::max(synced_, number);
    leave_segments();
    go_on_stopping();
    host_.request_flush();
  });
}

// Every older segment was trimmed, and so is on the disk.
bool Journal::is_oldest_unsynced(std::uint64_t segment) const {
  return left_.empty() && !preallocator_.empty() && preallocator_.first_segment() == segment;
}

// Closes the files of segments that are written to their end.
void Journal::leave_segments() {
  const Part* next = nullptr;
  if (committing_now_ && part_index_ < commit_.size()) {
    next = &commit_[part_index_];
  } else if (!pending_.empty()) {
    next = &pending_.front();
  }
  const std::uint64_t segment = next != nullptr ? next->segment : head_.segment;
  while (!preallocator_.empty() && preallocator_.first_segment() < segment &&
         !preallocator_.growing() && !syncing_) {
    const Preallocator::OpenFile file = preallocator_.leave();
    closed_bytes_ += file.bytes;
    left_.push_back({file, liveness_.use_of(file.segment).used_bytes, ends_.front()});
    ends_.pop_front();
  }
  trim_left();
}

void Journal::trim_left() {
  if (trimming_ || left_.empty() || failed_) return;
  trimming_ = true;
  const Left left = left_.front();
  // On a full disk what is given back may be gone for good: the file keeps it until it is reused.
  // No file becomes too short for that.
  const std::uint64_t kept = full_ ? left.file.bytes : options_.segment_bytes / 2;
  const std::uint64_t wanted = std::max(left.used_bytes, std::min(left.file.bytes, kept));
  storage_.trim(left.file.file, wanted, [this, left, wanted](const Outcome& outcome) {
    trimming_ = false;
    if (failed_) return;
    if (outcome.kind == Outcome::Kind::failed) return fail(outcome.reason);
    storage_.close(left.file.file);
    left_.pop_front();
    const std::uint64_t bytes = outcome.ok() ? wanted : left.file.bytes;
    closed_bytes_ -= left.file.bytes - bytes;
    if (bytes > left.used_bytes) untrimmed_[left.file.segment] = bytes - left.used_bytes;
    synced_ = std::max(synced_, left.end);
    trim_left();
    if (starved_) write_part();
    go_on_stopping();
    host_.request_flush();
  });
}

// --- The end

void Journal::close(std::function<void()> closed) {
  if (!std::exchange(clock_is_read_, true)) set_clock(host_.wall_clock());
  stopped_ = std::move(closed);
  go_on_stopping();
}

void Journal::go_on_stopping() {
  if (!stopped_ || failed_ || committing_now_) return;
  if (!stop_written_) {
    while (pending_.empty() && rewrite_deadlines()) {
    }
    // The mark has a batch of its own, behind the last fact.
    if (pending_.empty()) part_for(0).clean = true;
    return begin_commit();
  }
  if (left_.empty() && !syncing_ && !removing_ && !preallocator_.growing()) stopped_();
}

LogStats Journal::stats() const {
  return {.on_disk = true,
          .oldest_segment = liveness_.oldest().sequence,
          .current_segment = head_.segment,
          .records_migrated = records_migrated_,
          .records_written = records_written_,
          .segment_bytes = options_.segment_bytes,
          .file_bytes = file_bytes(),
          .live_bytes = liveness_.live_bytes(),
          .max_file_bytes = options_.max_bytes,
          .commits = commits_,
          .commit_times = commit_times_.view(),
          .commit_records = commit_records_.view(),
          .full = full_};
}

}  // namespace tubed::journal
