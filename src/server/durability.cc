#include "server/durability.h"

#include <fmt/format.h>

#include "engine/replay.h"
#include "journal/copy.h"
#include "journal/import.h"
#include "journal/restorer.h"
#include "platform/clock.h"
#include "platform/process.h"
#include "platform/supervisor.h"

namespace tubed::server {

using platform::Log;

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
    const Time now = platform::monotonic_now();
    if (now - last_ < kProgressEvery) return;
    last_ = now;
    log_.info(doing_, {{"bytes", done}, {"of", total}});
    platform::tell_supervisor_starting(
        fmt::format("{}: {} of {} MiB read", doing_, done >> 20, total >> 20), kPatience);
  }

 private:
  Log& log_;
  std::string doing_;
  Time last_ = platform::monotonic_now();
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
  const Duration passed = platform::monotonic_now() - begin;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

}  // namespace

Result<std::unique_ptr<Durability>> Durability::open(platform::Loop& loop, Log& log,
                                                     const Settings& settings,
                                                     commands::Service& service,
                                                     DurabilityHost& host) {
  std::unique_ptr<Durability> durability(new Durability(log, settings, service, host));
  auto storage = platform::FileStorage::open(loop, settings.journal_directory,
                                             platform::FileStorage::Mode::owner);
  if (!storage) return advised(storage.error());
  durability->storage_ = std::move(*storage);
  durability->storage_->expect_synced_writes(settings.journal_sync == kSyncAlways);
  durability->clock_.offset = platform::wall_offset();
  durability->new_directory_ = platform::random_number();
  if (auto recovered = durability->recover(); !recovered) {
    return Error{fmt::format("journal {}: {}", settings.journal_directory,
                             advised(recovered.error()).message)};
  }
  // A turn in which nothing is written does not read the wall clock.
  durability->clock_watch_ =
      std::make_unique<platform::ClockWatch>(loop, [owner = durability.get()] {
        owner->host_.journal_time();  // begins a turn, whose end writes the first deadlines
        owner->read_clock();
      });
  durability->read_clock();  // it may have been stepped during the recovery
  return durability;
}

Result<void> Durability::recover() {
  const Time begin = platform::monotonic_now();
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
                                            {"lost_groups", cut->lost_groups}});
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
  service_.keep_facts_in(this);
  recovery_ = platform::monotonic_now() - begin;
  return {};
}

Result<void> Durability::import() {
  auto report = TRY(journal::import_binlogs(
      *storage_,
      {.directory = new_directory_,
       .segment_bytes = segment_bytes_in_force(settings_),
       .clock = clock_,
       .now = platform::wall_time().count()},
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

journal::Options Durability::options() const {
  return {.sync = settings_.journal_sync,
          .segment_bytes = segment_bytes_in_force(settings_),
          .max_bytes = settings_.journal_max_bytes,
          .directory = new_directory_,
          .clock = clock_};
}

void Durability::apply(const Settings& settings) {
  settings_ = settings;
  storage_->expect_synced_writes(settings.journal_sync == kSyncAlways);
  journal_->set_options(options());
}

void Durability::read_clock() {
  clock_is_read_ = true;
  journal_->set_clock({.offset = platform::wall_offset()});
}

void Durability::stop(std::function<void()> stopped) {
  read_clock();
  journal_->stop(std::move(stopped));
}

bool Durability::has_room_for_job(std::size_t tube_bytes, std::size_t body_bytes) const {
  return journal_->has_room_for(journal::added_bytes(tube_bytes, body_bytes));
}

commands::KeeperCounts Durability::counts() const {
  const journal::JournalCounts counts = journal_->counts();
  return {.oldest_segment = counts.oldest_segment,
          .current_segment = counts.current_segment,
          .records_migrated = counts.records_migrated,
          .records_written = counts.records_written,
          .segment_bytes = segment_bytes_in_force(settings_),
          .file_bytes = counts.file_bytes,
          .live_bytes = counts.live_bytes,
          .max_file_bytes = settings_.journal_max_bytes,
          .commits = counts.commits,
          .commit_times = counts.commit_times,
          .commit_records = counts.commit_records,
          .recovery = recovery_,
          .full = counts.full};
}

// The boot is noted when the gap of ids, if there was one, is on the disk: with the first commit.
void Durability::journal_moved() {
  if (!boot_noted_ && journal_->counts().commits > 0) {
    storage_->note_boot();
    boot_noted_ = true;
  }
  host_.journal_moved();
}

void Durability::journal_failed(const std::string& reason) {
  log_.error("journal failed: nothing more can be made durable", {{"reason", reason}});
  host_.journal_failed();
}

void Durability::journal_full(bool full, const std::string& reason) {
  if (full) {
    log_.limited(Log::Level::warning, service_.now(), "no room for the journal: puts are refused",
                 {{"reason", reason}});
  } else {
    log_.limited(Log::Level::info, service_.now(), "room for the journal again");
  }
}

void Durability::describe_job(JobId id, FactSink& sink) {
  service_.engine().describe(service_.now(), id, sink);
}

void Durability::describe_delay(JobId id, FactSink& sink) {
  service_.engine().describe_delay(service_.now(), id, sink);
}

}  // namespace tubed::server
