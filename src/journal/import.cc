#include "journal/import.h"

#include <algorithm>

#include <fmt/format.h>

#include "journal/binlog.h"
#include "journal/segment.h"

// import_binlogs() examines the directory, decides from the markers where an earlier import
// stopped, and continues there. The steps are numbered in import.h.
namespace tubed::journal {

namespace {

constexpr std::string_view kImported = "imported/";
constexpr std::string_view kMarkerText =
    "beanstalkd's binlogs are being imported. tubed removes this file when that is finished.\n";

struct Binlog {
  std::uint64_t number = 0;
  std::string name;
  std::uint64_t bytes = 0;
};

// The files of the directory that concern an import.
struct Found {
  std::vector<Binlog> binlogs;  // oldest first
  std::vector<std::string> segments;
  bool begun = false;
  bool done = false;
};

Result<Found> look(Storage& storage) {
  auto files = TRY(storage.list());
  Found found;
  for (FileInfo& file : files) {
    if (const auto number = binlog_number(file.name)) {
      found.binlogs.push_back({*number, std::move(file.name), file.bytes});
    } else if (sequence_of(file.name)) {
      found.segments.push_back(std::move(file.name));
    } else {
      found.begun = found.begun || file.name == kImportBegun;
      found.done = found.done || file.name == kImportDone;
    }
  }
  std::ranges::sort(found.binlogs, {}, &Binlog::number);
  return found;
}

// Returns the reason why these files cannot be imported, or nothing if they can.
std::optional<Error> objection(const Found& found) {
  const std::string_view marker = found.done ? kImportDone : kImportBegun;
  if (found.done && found.segments.empty()) {
    return Error{fmt::format(
        "{} says that binlogs were imported, but there is no journal: put the journal back, or "
        "remove {} and put the binlogs back from imported/",
        marker, marker)};
  }
  if (found.done) return {};
  if (found.begun && found.binlogs.empty()) {
    return Error{fmt::format(
        "{} says that an import of binlogs was not finished, but there is no binlog: put them "
        "back, or remove all journal.* and then {}",
        marker, marker)};
  }
  if (!found.begun && !found.binlogs.empty() && !found.segments.empty()) {
    return Error{fmt::format(
        "there are beanstalkd's binlogs ({} and others like it) beside a journal ({}): move those "
        "that are not to be used to another directory",
        found.binlogs.front().name, *std::ranges::min_element(found.segments))};
  }
  for (std::size_t i = 1; i < found.binlogs.size(); ++i) {
    const std::uint64_t expected = found.binlogs[i - 1].number + 1;
    if (found.binlogs[i].number == expected) continue;
    return Error{fmt::format(
        "binlog.{} is missing between {} and {}: put it back, or, if it is lost for good, an empty "
        "file of its name",
        expected, found.binlogs[i - 1].name, found.binlogs[i].name)};
  }
  return {};
}

class Import {
 public:
  Import(Storage& storage, const LogCopy::Settings& settings, const ImportLog& log,
         const Progress& progress)
      : storage_(storage), settings_(settings), log_(log), progress_(progress) {}

  Result<std::optional<ImportReport>> run() {
    found_ = TRY(look(storage_));
    if (auto error = objection(found_)) return std::move(*error);
    if (found_.done) {
      log_(fmt::format("beanstalkd's binlogs were imported; {} of them are still to be moved to {}",
                       found_.binlogs.size(), kImported));
      TRY(tidy());
      return std::optional<ImportReport>();
    }
    if (found_.binlogs.empty()) return std::optional<ImportReport>();
    TRY(begin());
    if (auto converted = convert(); !converted) return take_back(converted.error());
    TRY(storage_.move(std::string(kImportBegun), std::string(kImportDone)));
    TRY(tidy());
    return std::optional(std::move(report_));
  }

 private:
  Result<void> begin() {
    log_(fmt::format("importing beanstalkd's binlogs: {} to {}", found_.binlogs.front().name,
                     found_.binlogs.back().name));
    if (!found_.begun) return storage_.store(std::string(kImportBegun), kMarkerText);
    log_("an import was cut off; it begins again");
    return remove_segments(found_.segments);
  }

  Result<void> remove_segments(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      TRY(storage_.remove_now(name));
    }
    return {};
  }

  Result<void> convert() {
    LogCopy copy(storage_, settings_);
    BinlogReader reader(settings_.clock, copy);
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    for (const Binlog& binlog : found_.binlogs) total += binlog.bytes;
    for (const Binlog& binlog : found_.binlogs) {
      auto image = TRY(contents(binlog.name));
      auto torn = reader.read(image, &binlog == &found_.binlogs.back());
      if (!torn) return Error{fmt::format("{} {}", binlog.name, torn.error().message)};
      if (*torn) note_torn(binlog, **torn);
      done += binlog.bytes;
      if (progress_) progress_(done, total);
    }
    copy.use_ids_below(reader.next_job_id());
    TRY(copy.finish());
    const BinlogJobs jobs = reader.jobs(settings_.clock.to_monotonic(settings_.now));
    report_.files = found_.binlogs.size();
    report_.records = reader.records();
    report_.ready = jobs.ready;
    report_.delayed = jobs.delayed;
    report_.buried = jobs.buried;
    return {};
  }

  Result<std::string> contents(const std::string& name) {
    auto file = TRY(storage_.open(name));
    auto image = storage_.read(file);
    storage_.close(file);
    return image;
  }

  void note_torn(const Binlog& binlog, const TornBinlog& torn) {
    report_.torn.push_back(fmt::format("{} ends at byte {} of {}: {}", binlog.name, torn.offset,
                                       binlog.bytes, torn.reason));
  }

  // Restores the directory as it was. If that fails too, the marker stays, and the next start
  // restores the directory.
  Error take_back(Error error) {
    auto found = look(storage_);
    if (found && remove_segments(found->segments)) {
      if (!storage_.remove_now(std::string(kImportBegun))) log_("the import's marker stays");
    }
    return error;
  }

  Result<void> tidy() {
    for (const Binlog& binlog : found_.binlogs) {
      TRY(storage_.move(binlog.name, std::string(kImported) + binlog.name));
    }
    return storage_.remove_now(std::string(kImportDone));
  }

  Storage& storage_;
  const LogCopy::Settings& settings_;
  const ImportLog& log_;
  const Progress& progress_;
  Found found_;
  ImportReport report_;
};

}  // namespace

Result<std::optional<ImportReport>> import_binlogs(Storage& storage,
                                                   const LogCopy::Settings& settings,
                                                   const ImportLog& log, const Progress& progress) {
  return Import(storage, settings, log, progress).run();
}

}  // namespace tubed::journal
