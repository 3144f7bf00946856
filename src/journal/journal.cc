#include "journal/journal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/planted.h"
#include "journal/record.h"
#include "journal/segment.h"

// flush() is the end of a tick. It runs the parts in this order: it repeats a refused write;
// appends copies and rewritten deadlines and begins the commit; removes a dead segment; begins a
// sync and a step of growth. Each of these operations runs in the background and ends in advance().
namespace tubed::journal {

namespace {

// While more than this is waiting to be written, commands that may emit a fact are not accepted.
constexpr std::uint64_t kMaxPendingBytes = 4 << 20;

// Clients give delays and pauses in whole seconds, so half a second is within their precision.
constexpr std::chrono::milliseconds kClockTolerance{500};

}  // namespace

// --- Opening

Result<std::unique_ptr<Journal>> Journal::open(Storage& storage, JournalHost& host,
                                               const Options& options, Examined found) {
  const std::vector<FoundSegment> segments = found.segments;
  const std::size_t current = found.current;
  const bool torn = found.cut.has_value();
  std::vector<FileId> files;
  for (std::size_t i = current; i < segments.size(); ++i) {
    files.push_back(TRY(storage.open(segment_name(segments[i].sequence))));
  }
  std::unique_ptr<Journal> journal(new Journal(storage, host, options, std::move(found)));
  for (std::size_t i = current; i < segments.size(); ++i) {
    const bool was_cut = torn && i == current;
    journal->preallocator_.adopt(segments[i].header, files[i - current],
                                 was_cut ? segments[i].used_bytes : segments[i].file_bytes);
  }
  return journal;
}

Journal::Journal(Storage& storage, JournalHost& host, const Options& options, Examined found)
    : FactLog(found.next_lsn),
      context_{.storage = storage,
               .host = host,
               .directory = found.segments.empty() ? options.directory : found.directory,
               .options = options,
               .clock = options.clock,
               .advance = [this] { advance(); }},
      liveness_(std::move(found.liveness)),
      preallocator_(storage, context_.directory),
      space_(context_, liveness_, preallocator_, closed_files_),
      closer_(context_, liveness_, preallocator_, closed_files_, space_),
      syncer_(context_, preallocator_, closer_, appended_),
      appender_(context_, liveness_, preallocator_, space_, closer_, appended_, found.next_job_id),
      committer_(context_, liveness_, preallocator_, space_, closer_, syncer_, appender_),
      compactor_(context_, liveness_, space_, appender_),
      remover_(context_, liveness_, preallocator_, closed_files_, space_, closer_, syncer_,
               appender_, committer_),
      rewriter_(context_, liveness_, space_, appender_) {
  for (std::size_t i = 0; i < found.current; ++i) {
    closed_files_.set(found.segments[i].sequence, found.segments[i].file_bytes);
  }
}

// --- Settings and the clock

void Journal::set_options(const Options& options) {
  const bool becomes_always = options.syncs_each_commit() && !context_.options.syncs_each_commit();
  context_.options = options;
  if (becomes_always) committer_.sync_older_first();
  syncer_.apply_options(becomes_always);
  space_.apply_options();
}

void Journal::set_clock(const WallClock& clock) {
  if (std::chrono::abs(clock.offset - context_.clock.offset) <= kClockTolerance) return;
  context_.clock = clock;
  rewriter_.restart();
}

// Reads the wall clock once in each tick that writes.
void Journal::read_clock() {
  if (!std::exchange(clock_is_read_, true)) set_clock(context_.host.wall_clock());
}

// --- Facts

void Journal::fact(const Fact& fact) {
  TUBED_ASSERT(!context_.closing);
  if (in_unit_) [[unlikely]] {
    unit_.emplace_back(fact);
    ++appended_;
    return;
  }
  read_clock();
  appended_ = appender_.append(fact);
}

void Journal::begin_unit() {
  TUBED_ASSERT(!in_unit_);
  in_unit_ = true;
}

void Journal::end_unit() {
  in_unit_ = false;
  if (unit_.size() > 1 && !TUBED_PLANTED(segment_ends_within_unit)) {
    std::uint64_t bytes = 0;
    for (const OwnedFact& each : unit_) bytes += record_bytes(each.fact());
    make_room(bytes);
  }
  for (const OwnedFact& each : unit_) fact(each.fact());
  unit_.clear();
}

void Journal::make_room(std::uint64_t bytes) {
  TUBED_ASSERT(!context_.closing);
  appender_.make_room(bytes);
}

bool Journal::has_room_for(std::size_t body_bytes) const {
  return space_.has_room_for(added_bytes(kMaxTubeNameBytes, body_bytes));
}

// Puts must not use the reserve before the disk has refused to grow: they wait for its answer. Once
// it has refused, has_room_for() decides about puts, and other commands may use the reserve.
[[gnu::always_inline]] inline bool Journal::lacks_room() const {
  if (appender_.pending_bytes() > kMaxPendingBytes || committer_.starved() ||
      space_.write_refused()) {
    return true;
  }
  return space_.full() ? comes_second() : space_.lacks_reserve();
}

// True if the journal is full and freeing space comes first.
[[gnu::noinline]] bool Journal::comes_second() const {
  return remover_.frees_space_soon() || compactor_.comes_first();
}

bool Journal::overloaded() const {
  return lacks_room();
}

bool Journal::congested() const {
  if (lacks_room()) return true;
  return space_.holds_back() && frees_soon() && !TUBED_PLANTED(promise_holds_nothing_back);
}

// True if dead bytes will be removed by ticks alone. While the journal is full, lacks_room()
// decides.
[[gnu::noinline]] bool Journal::frees_soon() const {
  return !space_.full() && (remover_.has_dead() || compactor_.wanted());
}

// --- The end of a tick

bool Journal::flush() {
  TUBED_ASSERT(!in_unit_);
  clock_is_read_ = false;
  if (context_.failed || committer_.mark_written()) return false;
  const Time now = context_.host.now();
  if (space_.take_retry(now) && space_.write_refused()) committer_.retry_write();
  const bool more = !committer_.in_flight() && prepare_commit(now);
  remover_.go_on();
  syncer_.flush(now);
  space_.grow_if_needed(committer_.starved_at());
  publish();
  return more && !committer_.in_flight();
}

// Appends what compaction and the deadline rewriter have to write, and begins the commit. Returns
// true if flush() should be called again in the next tick.
bool Journal::prepare_commit(Time now) {
  if (!appender_.pending().empty() && committer_.waits(now)) return true;
  bool more = false;
  if (!context_.closing && compactor_.wanted()) {
    more = compactor_.run_slice();
    space_.note_freeing_step();
  }
  if (rewriter_.active()) more = rewrite_deadlines() || more;
  if (!appender_.pending().empty()) committer_.begin();
  return more;
}

bool Journal::rewrite_deadlines() {
  return rewriter_.run_slice([this] { return congested(); });
}

Time Journal::next_deadline() const {
  return context_.failed ? kNever : std::min(syncer_.deadline(), space_.retry_at());
}

// Called when a background operation has ended.
void Journal::advance() {
  committer_.go_on();
  go_on_closing();
  publish();
  context_.host.request_flush();
}

void Journal::publish() {
  appended_ = appender_.appended();
  durable_ = committer_.durable();
}

// --- The end

void Journal::close(std::function<void()> closed) {
  read_clock();
  closed_ = std::move(closed);
  context_.closing = true;
  go_on_closing();
  publish();
}

// Steps 2 to 6 of an orderly stop. The clean mark is a batch of its own, after the last fact.
void Journal::go_on_closing() {
  if (!context_.closing || context_.failed || committer_.in_flight()) return;
  if (!committer_.mark_written()) {
    while (appender_.pending().empty() && rewriter_.active() && rewrite_deadlines()) {
    }
    if (appender_.pending().empty()) {
      if (!all_is_synced() && !TUBED_PLANTED(mark_before_the_last_sync)) return;
      appender_.begin_batch().header.clean = true;
    }
    return committer_.begin();
  }
  if (closer_.idle() && !syncer_.running() && !remover_.running() && !preallocator_.growing()) {
    closed_();
  }
}

// Step 4. If it returns false, a sync has been started or waits for a file that is being closed.
bool Journal::all_is_synced() {
  if (syncer_.synced() >= appender_.appended()) return true;
  syncer_.request();
  syncer_.flush(context_.host.now());
  return false;
}

LogStats Journal::stats() const {
  const CommitStats& commits = committer_.stats();
  return {.on_disk = true,
          .oldest_segment = liveness_.oldest().sequence,
          .current_segment = liveness_.newest().sequence,
          .records_migrated = appender_.records_copied(),
          .records_written = appender_.facts_written(),
          .segment_bytes = context_.options.segment_bytes,
          .file_bytes = space_.file_bytes(),
          .live_bytes = liveness_.live_bytes(),
          .max_file_bytes = context_.options.max_bytes,
          .commits = commits.commits,
          .commit_times = commits.times.counts(),
          .commit_records = commits.facts.counts(),
          .full = space_.full()};
}

}  // namespace tubed::journal
