#include "journal/recovery.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/zeros.h"
#include "journal/cut_files.h"

// Examiner takes steps 1 to 5 of recovery.h. It reads one segment at a time. Records are collected
// in batch_ and passed on only when the batch is complete, because a batch counts as a whole or not
// at all. Once the log has ended (ended_), the remaining segments are only searched for evidence.
// After the last segment, settle_end() and check_jobs() decide between damage and a torn tail.
namespace tubed::journal {

namespace {

constexpr std::string_view kUnfinished = ".new";
constexpr std::uint64_t kMostSegments = UINT32_MAX;  // SegmentLiveness stores 32 bits

// No journal reaches these ids. After the largest, the next id would be 0.
constexpr JobId kIdsEnd = UINT64_MAX - UINT32_MAX;

Error damage(std::string message) {
  return {.message = std::move(message), .kind = Error::Kind::damaged};
}

Error damaged(std::uint64_t segment, std::uint64_t offset, std::string_view reason) {
  return damage(
      fmt::format("{} is damaged at offset {}: {}", segment_name(segment), offset, reason));
}

// Opens, reads and closes the segment.
Result<std::string> read_file(FileReader& storage, std::uint64_t sequence) {
  auto file = TRY(storage.open(segment_name(sequence)));
  auto image = storage.read(file);
  storage.close(file);
  return image;
}

class Examiner {
 public:
  Examiner(FileReader& storage, const WallClock& clock, RecordSink& sink, const Progress& progress)
      : storage_(storage), clock_(clock), sink_(sink), progress_(progress) {}

  Result<Examined> run() {
    TRY(list());
    for (std::size_t i = 0; i < found_.segments.size(); ++i) {
      TRY(read_segment(i));
      bytes_done_ += found_.segments[i].file_bytes;
      if (progress_) progress_(bytes_done_, bytes_total_);
    }
    if (impossible_) return *impossible_;
    if (ended_) {
      TRY(settle_end());
    } else if (begins_late()) {
      return damaged(found_.segments.front().sequence, kSegmentHeaderBytes,
                     "nothing is written here");
    }
    TRY(check_jobs());
    const auto& segments = found_.segments;
    open_liveness_up_to(segments.empty() ? 1 : segments[found_.current].sequence);
    return std::move(found_);
  }

 private:
  struct Entry {
    explicit Entry(SegmentReader& reader) : offset(reader.offset()), parsed(reader.next()) {}

    std::uint64_t offset;
    Parsed parsed;  // points into the segment's image
  };
  // Where the log ends although something is written there.
  struct End {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    std::string reason;
  };

  Result<void> list() {
    auto files = TRY(storage_.list());
    for (const FileInfo& file : files) {
      if (const auto sequence = sequence_of(file.name)) {
        found_.segments.push_back({*sequence, file.bytes, kSegmentHeaderBytes, {}});
        bytes_total_ += file.bytes;
      } else if (file.name.starts_with("journal.") && file.name.ends_with(kUnfinished)) {
        found_.leftovers.push_back(file.name);
      }
    }
    std::ranges::sort(found_.segments, {}, &FoundSegment::sequence);
    if (!found_.segments.empty() && found_.segments.back().sequence > kMostSegments) {
      return damage(fmt::format("{} has a number that no journal comes to",
                                segment_name(found_.segments.back().sequence)));
    }
    for (std::size_t i = 1; i < found_.segments.size(); ++i) {
      const std::uint64_t expected = found_.segments[i - 1].sequence + 1;
      if (found_.segments[i].sequence != expected) {
        return damage(fmt::format("{} is missing", segment_name(expected)));
      }
    }
    return {};
  }

  Result<void> read_segment(std::size_t index) {
    FoundSegment& segment = found_.segments[index];
    auto image = TRY(read_file(storage_, segment.sequence));
    const auto header = decode_header(image, segment.sequence);
    const std::string name = segment_name(segment.sequence);
    if (!header) {
      const std::string message = fmt::format("{} {}", name, header.error().message);
      return has_unknown_version(image) ? Error{message} : damage(message);
    }
    segment.header = header.value();
    if (index == 0) found_.directory = header.value().directory;
    if (header.value().directory != found_.directory) {
      return damage(fmt::format("{} belongs to another journal", name));
    }
    SegmentReader reader(image, segment.sequence, clock_);
    if (!ended_) {
      read_log(index, reader, image);
      if (ended_) reader.seek(end_.offset);
    }
    if (!ended_) return {};
    gather_evidence(reader);
    const std::string_view records = std::string_view(image).substr(kSegmentHeaderBytes);
    if (!all_zeros(records)) last_touched_ = index;
    return {};
  }

  // Step 3: takes batches until the segment or the log ends. A record is read in place in the
  // batch, and removed again if it does not continue the log.
  void read_log(std::size_t index, SegmentReader& reader, std::string_view image) {
    for (;;) {
      const Entry& entry = batch_.emplace_back(reader);
      std::string reason = ends_log(index, entry, image);
      if (!reason.empty() || entry.parsed.kind == Parsed::Kind::end) {
        const std::uint64_t offset = entry.offset;
        batch_.pop_back();
        if (!reason.empty()) end_log(index, offset, std::move(reason));
        return;
      }
      if (lacking() == 0) take_batch(index);
    }
  }

  // Returns why the bytes of the last entry do not continue the log, or an empty text.
  std::string ends_log(std::size_t index, const Entry& entry, std::string_view image) const {
    const Parsed& parsed = entry.parsed;
    if (parsed.kind == Parsed::Kind::bad) return std::string(parsed.reason);
    const bool at_end = parsed.kind == Parsed::Kind::end;
    if (at_end) {
      const std::string_view rest = image.substr(std::min<std::size_t>(entry.offset, image.size()));
      if (!all_zeros(rest)) {
        return "nothing is written here, but something behind it";
      }
    }
    const auto* batch = at_end ? nullptr : std::get_if<BatchHeader>(&parsed.record);
    if (batch_.size() > 1) {
      if (!at_end && batch == nullptr) return {};
      return fmt::format("{} facts of the group before it are missing", lacking() + 1);
    }
    if (at_end) return {};
    if (batch == nullptr) return "a fact stands in no group";
    if (continues(index, *batch)) return {};
    return fmt::format("fact {} should follow, and fact {} does", found_.next_lsn, batch->lsn);
  }

  // Returns how many facts of the current batch are still to come after its last entry.
  std::uint64_t lacking() const { return header_of_batch().facts - (batch_.size() - 1); }

  const BatchHeader& header_of_batch() const {
    return std::get<BatchHeader>(batch_.front().parsed.record);
  }

  bool continues(std::size_t index, const BatchHeader& batch) const {
    if (batch.directory != found_.directory) return false;
    if (begun_) return batch.lsn == found_.next_lsn;
    return index == 0 && (found_.segments.front().sequence != 1 || batch.lsn == 0);
  }

  // True if older segments were removed and this segment has no whole batch, which it must have had
  // at that time.
  bool begins_late() const {
    return !begun_ && !found_.segments.empty() && found_.segments.front().sequence > 1;
  }

  void take_batch(std::size_t index) {
    FoundSegment& segment = found_.segments[index];
    const BatchHeader& batch = header_of_batch();
    if (!is_possible(segment.sequence, batch_.front().offset, batch.next_job_id)) {
      return batch_.clear();
    }
    begun_ = true;
    jobs_ = batch.jobs;
    found_.current = index;
    found_.next_lsn = batch.lsn + batch.facts;
    found_.facts += batch.facts;
    found_.next_job_id = std::max(found_.next_job_id, batch.next_job_id);
    found_.clean = batch.clean && batch.facts == 0;
    segment.used_bytes = batch_.back().offset + batch_.back().parsed.bytes;
    open_liveness_up_to(segment.sequence);
    for (const Entry& entry : batch_) take(segment.sequence, entry);
    batch_.clear();
  }

  void take(std::uint64_t segment, const Entry& entry) {
    const Record& record = entry.parsed.record;
    const std::size_t bytes = entry.parsed.bytes;
    const auto* fact = std::get_if<Fact>(&record);
    if (fact == nullptr) {
      found_.liveness.use(bytes);
      return sink_.record(segment, entry.offset, bytes, record);
    }
    const JobId id = id_used_by(*fact);
    if (!is_possible(segment, entry.offset, id)) return;
    found_.next_job_id = std::max(found_.next_job_id, id + 1);
    if (const auto* applied = std::get_if<Applied>(fact)) found_.applied = *applied;
    if (found_.liveness.apply(*fact, bytes) == SegmentLiveness::Effect::again) {
      return sink_.copied(segment, entry.offset, bytes, record);
    }
    sink_.record(segment, entry.offset, bytes, record);
  }

  bool is_possible(std::uint64_t segment, std::uint64_t offset, JobId id) {
    if (id < kIdsEnd) return true;
    if (!impossible_) {
      impossible_ = damaged(segment, offset, fmt::format("no journal comes to id {}", id));
    }
    return false;
  }

  void open_liveness_up_to(std::uint64_t segment) {
    SegmentLiveness& liveness = found_.liveness;
    std::uint64_t next = found_.segments.empty() ? segment : found_.segments.front().sequence;
    if (!liveness.empty()) next = liveness.newest().sequence + 1;
    for (; next <= segment; ++next) liveness.open_segment(next, kSegmentHeaderBytes);
  }

  // Ends the log. A batch counts as a whole or not at all, so the log is cut before an incomplete
  // batch.
  void end_log(std::size_t index, std::uint64_t offset, std::string reason) {
    ended_ = true;
    end_ = {found_.segments[index].sequence, offset, std::move(reason)};
    found_.cut = Cut{.segment = end_.segment,
                     .offset = batch_.empty() ? offset : batch_.front().offset,
                     .reason = batch_.empty() ? end_.reason
                                              : fmt::format("the group is not whole: at {}, {}",
                                                            offset, end_.reason),
                     .lost_batches = 0,
                     .kept = {}};
    batch_.clear();
  }

  // Step 4: whole batches after the end of the log say how much of it was on disk.
  void gather_evidence(SegmentReader& reader) {
    while (const auto batch = reader.find_batch()) {
      if (batch->directory != found_.directory) continue;
      ++found_.cut->lost_batches;
      durable_ = std::max(durable_, batch->durable);
    }
  }

  Result<void> settle_end() {
    if (durable_ > found_.next_lsn || begins_late()) {
      return damaged(end_.segment, end_.offset, end_.reason);
    }
    found_.clean = false;
    // The log continues after its last whole batch. Later segments with contents are unusable;
    // empty segments can be used unless a segment with contents precedes them.
    const std::size_t keep = found_.current + 1;
    if (last_touched_ >= keep) {
      for (std::size_t i = found_.segments.size() - 1; i >= keep; --i) {
        found_.leftovers.push_back(segment_name(found_.segments[i].sequence));
      }
      found_.segments.resize(keep);
    }
    return {};
  }

  // Step 5. Earlier in the log the numbers may differ: the `Added` of a job may be in a removed
  // segment, and its copy further on. But a segment is removed only when all records that replace
  // it are on disk, in whole batches, so the numbers agree at the end.
  Result<void> check_jobs() const {
    const std::uint64_t given = found_.liveness.jobs();
    if (!begun_ || given == jobs_) return {};
    if (ended_) {
      return damaged(end_.segment, end_.offset,
                     fmt::format("{}; the log before it gives {} jobs, and says that there are {}",
                                 end_.reason, given, jobs_));
    }
    const FoundSegment& last = found_.segments[found_.current];
    return damage(fmt::format(
        "{} is the oldest segment, and the log from there to offset {} of {} gives {} jobs, "
        "and says that there are {}: older segments are missing, or the end of the log is",
        segment_name(found_.segments.front().sequence), last.used_bytes,
        segment_name(last.sequence), given, jobs_));
  }

  FileReader& storage_;
  WallClock clock_;
  RecordSink& sink_;
  const Progress& progress_;
  Examined found_;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t bytes_total_ = 0;
  std::vector<Entry> batch_;  // the incomplete batch; empty: between batches
  bool begun_ = false;        // a whole batch was read
  std::uint64_t jobs_ = 0;    // according to the last whole batch
  bool ended_ = false;        // something does not continue the log
  End end_;
  std::size_t last_touched_ = 0;  // last segment with contents after the end of the log
  Lsn durable_ = 0;
  std::optional<Error> impossible_;  // a record with a valid checksum
};

bool lacks_space(const Result<void>& result) {
  return !result && result.error().kind == Error::Kind::no_space;
}

// Makes the file and the name of a segment durable, and cuts the file to the bytes that count.
Result<void> settle(Storage& storage, FoundSegment& segment, bool goes_on, bool torn) {
  auto file = TRY(storage.open(segment_name(segment.sequence)));
  Result<void> result;
  // The segment was left but not trimmed yet, or is torn after its last batch.
  if (!goes_on && segment.file_bytes > segment.used_bytes) {
    result = storage.truncate(file, segment.used_bytes);
    if (result) segment.file_bytes = segment.used_bytes;
    if (!torn && lacks_space(result)) result = {};  // may keep its zeros
  }
  if (result) result = storage.sync_now(file);
  storage.close(file);
  return result;
}

}  // namespace

Result<Examined> examine(FileReader& storage, const WallClock& clock, RecordSink& sink,
                         const Progress& progress) {
  return Examiner(storage, clock, sink, progress).run();
}

Result<void> repair(Storage& storage, Examined& examined) {
  std::optional<UnkeptBytes> unkept;
  if (examined.cut && !TUBED_PLANTED(cut_is_not_kept)) unkept = TRY(keep_cut(storage, examined));
  // Newest first, so another crash leaves no gap.
  for (const std::string& name : examined.leftovers) {
    const auto removed = storage.remove_now(name);
    const bool may_stay = name.ends_with(kUnfinished) && lacks_space(removed);
    if (!removed && !may_stay) return removed;
  }
  // Replies will depend on what was read here, so it must be on disk, whatever the mode was.
  for (std::size_t i = 0; i < examined.segments.size(); ++i) {
    const bool torn = i == examined.current && examined.cut.has_value();
    const bool goes_on = i >= examined.current && !torn;
    TRY(settle(storage, examined.segments[i], goes_on, torn));
  }
  if (unkept) TRY(keep_after_cut(storage, *unkept, *examined.cut));
  return {};
}

}  // namespace tubed::journal
