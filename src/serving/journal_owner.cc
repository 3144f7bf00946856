// How a journal is recovered
//
// 1. If the directory holds binlogs of beanstalkd, they are imported (journal/import.h).
// 2. All segments are read, and their facts are replayed into the engine. Progress is logged, and
//    reported to the service manager, which would otherwise end a long start.
// 3. The directory is repaired: a torn tail is cut, which a warning reports.
// 4. If acknowledged jobs may be missing, after a crash of the machine or in a backup, the next job
//    id skips kSkippedIds: no id may name two different jobs.
// 5. The journal is opened for writing and becomes the log of the service. After its first commit
//    the boot is recorded in the directory: a later crash of the process then skips no ids.
//
// While serving, the journal calls the functions of JournalHost. A step of the wall clock begins a
// tick and gives the journal the new offset, because deadlines on disk are wall clock time.
#include "serving/journal_owner.h"

#include <fmt/format.h>

#include "engine/replay.h"
#include "journal/copy.h"
#include "journal/import.h"
#include "journal/restorer.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/service_manager.h"
#include "serving/skipped_ids.h"

namespace tubed::serving {

using os::Log;

namespace {

constexpr std::chrono::seconds kProgressInterval{2};
// Each progress report asks the service manager for this much more time. Longer than the time
// between two reports.
constexpr std::chrono::minutes kStartExtension{2};

// How often the journal of a node is synced. Until then the raft log has the same facts.
constexpr std::chrono::seconds kReplicaSync{1};

// Logs the progress of recovery every few seconds.
class ProgressReport {
 public:
  ProgressReport(Log& log, std::string activity) : log_(log), activity_(std::move(activity)) {}

  void operator()(std::uint64_t done, std::uint64_t total) {
    const Time now = os::monotonic_now();
    if (now - last_ < kProgressInterval) return;
    last_ = now;
    log_.info(activity_, {{"bytes", done}, {"of", total}});
    os::notify_watchdog();  // a node reads its journal also while it serves
    os::notify_starting(fmt::format("{}: {} of {} MiB read", activity_, done >> 20, total >> 20),
                        kStartExtension);
  }

 private:
  Log& log_;
  std::string activity_;
  Time last_ = os::monotonic_now();
};

// Adds advice for the operator to the error.
Error with_advice(Error error) {
  if (error.kind == Error::Kind::damaged) {
    error.message += "; tubed --salvage copies what is whole";
  } else if (error.kind == Error::Kind::denied) {
    error.message +=
        "; the directory and its files must belong to the user that tubed runs as (chown)";
  }
  return error;
}

std::uint64_t milliseconds_since(Time begin) {
  const Duration passed = os::monotonic_now() - begin;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

}  // namespace

Result<std::unique_ptr<JournalOwner>> JournalOwner::open(loop::Loop& loop, Log& log,
                                                         const Settings& settings,
                                                         commands::Service& service,
                                                         JournalOwnerHost& host,
                                                         const Replication* replication) {
  std::unique_ptr<JournalOwner> owner(new JournalOwner(log, service, host, replication));
  auto storage =
      disk::FileStorage::open(loop, settings.journal_directory, disk::FileStorage::Mode::owner);
  if (!storage) return with_advice(storage.error());
  owner->storage_ = std::move(*storage);
  owner->storage_->expect_synced_writes(owner->options(settings).sync == kSyncAlways);
  owner->clock_ = owner->wall_clock();
  if (replication != nullptr) owner->ahead_ = host.wall_offset();
  owner->directory_id_ = os::random_number();
  if (auto recovered = owner->recover(settings); !recovered) {
    return Error{fmt::format("journal {}: {}", settings.journal_directory,
                             with_advice(recovered.error()).message)};
  }
  if (replication != nullptr) return owner;  // a step of the wall clock moves no deadline
  // The journal reads the wall clock only when it writes, so a step must be reported to it.
  owner->clock_watch_ = std::make_unique<loop::ClockWatch>(loop, [watched = owner.get()] {
    watched->host_.journal_time();  // begins a tick, whose end writes the first deadlines again
    watched->journal_->set_clock(watched->wall_clock());
  });
  owner->journal_->set_clock(owner->wall_clock());  // it may have been stepped during recovery
  return owner;
}

Result<void> JournalOwner::recover(const Settings& settings) {
  const Time begin = os::monotonic_now();
  if (replication_ == nullptr) TRY(import(segment_bytes_in_force(settings)));
  engine::Replay replay(service_.engine(), replication_ != nullptr ? Time() : service_.now());
  journal::Restorer restorer(replay);
  auto found =
      TRY(journal::examine(*storage_, clock_, restorer, ProgressReport(log_, "recovering")));
  TRY(journal::repair(*storage_, found));
  if (const auto& cut = found.cut) {
    log_.warning("journal cut at its end", {{"file", journal::segment_name(cut->segment)},
                                            {"offset", cut->offset},
                                            {"reason", cut->reason},
                                            {"lost_groups", cut->lost_batches},
                                            {"kept", cut->kept.empty() ? "nothing" : cut->kept}});
  }
  applied_ = found.applied;
  if (replication_ != nullptr && !applied_)
    return Error{"it has no position in the log of a cluster"};
  const bool lost = storage_->is_copy() || (!found.clean && storage_->first_of_boot());
  if (lost && !found.segments.empty() && replication_ == nullptr) found.next_job_id += kSkippedIds;
  log_.info("recovered", {{"journal", settings.journal_directory},
                          {"segments", std::uint64_t{found.segments.size()}},
                          {"facts", found.facts},
                          {"jobs", service_.engine().info().jobs.total()},
                          {"next_id", found.next_job_id},
                          {"after", found.segments.empty() ? "nothing: the journal is new"
                                    : found.clean          ? "a stop"
                                                           : "a crash"},
                          {"ms", milliseconds_since(begin)}});
  restorer.finish(found);
  if (replication_ == nullptr) {
    service_.engine().end_replay();
    // A server that was in a cluster has left reservations of clients that are not connected.
    service_.engine().recorded_reservations().hold_over(service_.now());
  }
  journal_ = TRY(journal::Journal::open(*storage_, *this, options(settings), std::move(found)));
  if (replication_ == nullptr) service_.set_log(*journal_);
  service_.counters().set_recovery_time(os::monotonic_now() - begin);
  return {};
}

Result<void> JournalOwner::import(std::uint64_t segment_bytes) {
  auto report = TRY(journal::import_binlogs(
      *storage_,
      {.directory = directory_id_,
       .segment_bytes = segment_bytes,
       .clock = clock_,
       .now = os::wall_time().count()},
      [this](const std::string& line) { log_.info(line); }, ProgressReport(log_, "importing")));
  if (!report) return {};
  const journal::ImportReport& imported = *report;
  for (const std::string& torn : imported.torn) log_.warning(torn);
  log_.info("imported", {{"files", imported.files},
                         {"records", imported.records},
                         {"ready", imported.ready},
                         {"delayed", imported.delayed},
                         {"buried", imported.buried}});
  return {};
}

journal::Options JournalOwner::options(const Settings& settings) const {
  return {.sync = replication_ != nullptr ? kReplicaSync : settings.journal_sync,
          .segment_bytes = segment_bytes_in_force(settings),
          .max_bytes = settings.journal_max_bytes,
          .directory = directory_id_,
          .clock = clock_,
          .reservations = replication_ != nullptr};
}

void JournalOwner::apply(const Settings& settings) {
  const journal::Options options = this->options(settings);
  storage_->expect_synced_writes(options.sync == kSyncAlways);
  journal_->set_options(options);
}

Time JournalOwner::next_deadline() const {
  const Time next = journal_->next_deadline();
  return next == kNever ? kNever : next - ahead_;
}

Time JournalOwner::settled_time() const {
  return replication_ != nullptr ? std::min(replication_->applied_time(), now()) : now();
}

// Returns the time of the state that is described to the compactor.
Time JournalOwner::describing_time() const {
  return replication_ != nullptr ? replication_->applied_time() : service_.now();
}

journal::WallClock JournalOwner::wall_clock() const {
  if (replication_ != nullptr) return {};
  return {.offset = host_.wall_offset()};
}

// The boot is recorded after the first commit, with which skipped ids are on the disk (recovery,
// step 5).
void JournalOwner::request_flush() {
  if (!boot_noted_ && journal_->stats().commits > 0) {
    storage_->record_boot();
    boot_noted_ = true;
  }
  host_.flush_requested();
}

void JournalOwner::report_failure(const std::string& reason) {
  log_.error("journal failed: nothing more can be made durable", {{"reason", reason}});
  host_.journal_failed();
}

void JournalOwner::report_full(bool full, const std::string& reason) {
  full_ = full;
  if (full) {
    log_.limited(Log::Level::warning, service_.tick_time(),
                 "no room for the journal: puts are refused", {{"reason", reason}});
  } else {
    log_.limited(Log::Level::info, service_.tick_time(), "room for the journal again");
  }
}

bool JournalOwner::describe_job(JobId id, FactSink& sink) {
  if (replication_ != nullptr && !replication_->is_settled(id)) return false;
  service_.engine().durable_state().describe(describing_time(), id, sink);
  return true;
}

void JournalOwner::describe_delay(JobId id, FactSink& sink) {
  service_.engine().durable_state().describe_delay(describing_time(), id, sink);
}

}  // namespace tubed::serving
