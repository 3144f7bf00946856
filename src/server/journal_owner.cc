#include "server/journal_owner.h"

#include <fmt/format.h>

#include "engine/replay.h"
#include "journal/copy.h"
#include "journal/import.h"
#include "journal/restorer.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/service_manager.h"

namespace tubed::server {

using os::Log;

namespace {

constexpr std::chrono::seconds kProgressEvery{2};
// What the supervisor is asked for each time: more than any one step takes.
constexpr std::chrono::minutes kPatience{2};

// More than the ids that a loss of power can have made the journal forget: with an interval or
// never, jobs that were acknowledged and not synced are gone, and clients may still have their ids.
// A backup lacks the jobs that came later.
constexpr JobId kLostIds = 10'000'000;

// Says every few seconds how far recovery has come.
class ProgressReport {
 public:
  ProgressReport(Log& log, std::string doing) : log_(log), doing_(std::move(doing)) {}

  void operator()(std::uint64_t done, std::uint64_t total) {
    const Time now = os::monotonic_now();
    if (now - last_ < kProgressEvery) return;
    last_ = now;
    log_.info(doing_, {{"bytes", done}, {"of", total}});
    os::notify_starting(fmt::format("{}: {} of {} MiB read", doing_, done >> 20, total >> 20),
                        kPatience);
  }

 private:
  Log& log_;
  std::string doing_;
  Time last_ = os::monotonic_now();
};

// With what the operator can do about it.
Error advised(Error error) {
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
                                                         Events events) {
  std::unique_ptr<JournalOwner> owner(new JournalOwner(log, settings, service, std::move(events)));
  auto storage =
      loop::FileStorage::open(loop, settings.journal_directory, loop::FileStorage::Mode::owner);
  if (!storage) return advised(storage.error());
  owner->storage_ = std::move(*storage);
  owner->storage_->expect_synced_writes(settings.journal_sync == kSyncAlways);
  owner->clock_.offset = os::wall_offset();
  owner->new_directory_ = os::random_number();
  if (auto recovered = owner->recover(); !recovered) {
    return Error{fmt::format("journal {}: {}", settings.journal_directory,
                             advised(recovered.error()).message)};
  }
  // A tick in which nothing is written does not read the wall clock.
  owner->clock_watch_ = std::make_unique<loop::ClockWatch>(loop, [watched = owner.get()] {
    watched->events_.now();  // begins a tick, whose end writes the first deadlines
    watched->journal_->set_clock(watched->wall_clock());
  });
  owner->journal_->set_clock(owner->wall_clock());  // it may have been stepped meanwhile
  return owner;
}

Result<void> JournalOwner::recover() {
  const Time begin = os::monotonic_now();
  TRY(import());
  engine::Replay replay(service_.engine(), service_.now());
  journal::Restorer restorer(replay);
  auto found =
      TRY(journal::examine(*storage_, clock_, restorer, ProgressReport(log_, "recovering")));
  TRY(journal::repair(*storage_, found));
  if (const auto& cut = found.cut) {
    log_.warning("journal cut at its end", {{"file", journal::segment_name(cut->segment)},
                                            {"offset", cut->offset},
                                            {"reason", cut->reason},
                                            {"lost_groups", cut->lost_batches}});
  }
  const bool lost = storage_->is_copy() || (!found.clean && storage_->first_of_boot());
  if (lost && !found.segments.empty()) found.next_job_id += kLostIds;
  log_.info("recovered", {{"journal", settings_.journal_directory},
                          {"segments", std::uint64_t{found.segments.size()}},
                          {"facts", found.facts},
                          {"jobs", service_.engine().info().jobs.total()},
                          {"next_id", found.next_job_id},
                          {"after", found.segments.empty() ? "nothing: the journal is new"
                                    : found.clean          ? "a stop"
                                                           : "a crash"},
                          {"ms", milliseconds_since(begin)}});
  restorer.finish(found);
  journal_ = TRY(journal::Journal::open(*storage_, *this, options(), std::move(found)));
  service_.set_log(*journal_);
  service_.counters().set_recovery_time(os::monotonic_now() - begin);
  return {};
}

Result<void> JournalOwner::import() {
  auto report = TRY(journal::import_binlogs(
      *storage_,
      {.directory = new_directory_,
       .segment_bytes = segment_bytes_in_force(settings_),
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

journal::Options JournalOwner::options() const {
  return {.sync = settings_.journal_sync,
          .segment_bytes = segment_bytes_in_force(settings_),
          .max_bytes = settings_.journal_max_bytes,
          .directory = new_directory_,
          .clock = clock_};
}

void JournalOwner::apply(const Settings& settings) {
  settings_ = settings;
  storage_->expect_synced_writes(settings.journal_sync == kSyncAlways);
  journal_->set_options(options());
}

journal::WallClock JournalOwner::wall_clock() const {
  return {.offset = os::wall_offset()};
}

// The boot is noted when the gap of ids, if there was one, is on the disk: with the first commit.
void JournalOwner::request_flush() {
  if (!boot_noted_ && journal_->stats().commits > 0) {
    storage_->note_boot();
    boot_noted_ = true;
  }
  events_.moved();
}

void JournalOwner::report_failure(const std::string& reason) {
  log_.error("journal failed: nothing more can be made durable", {{"reason", reason}});
  events_.failed();
}

void JournalOwner::report_full(bool full, const std::string& reason) {
  if (full) {
    log_.limited(Log::Level::warning, service_.now(), "no room for the journal: puts are refused",
                 {{"reason", reason}});
  } else {
    log_.limited(Log::Level::info, service_.now(), "room for the journal again");
  }
}

void JournalOwner::describe_job(JobId id, FactSink& sink) {
  service_.engine().describe(service_.now(), id, sink);
}

void JournalOwner::describe_delay(JobId id, FactSink& sink) {
  service_.engine().describe_delay(service_.now(), id, sink);
}

}  // namespace tubed::server
