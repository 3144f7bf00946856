#include "journal/backup.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/zeros.h"
#include "journal/recovery.h"
#include "journal/segment.h"

// A backup lists the segments, opens them all, and then copies them one by one, up to the last
// whole batch. Meanwhile the server may write, create, remove and reuse segments; the comments of
// open_all() and Backup explain why the copy is consistent nevertheless. At the end the copy is
// read as recovery reads it, because a damaged journal may have gaps that no single file shows.
namespace tubed::journal {

namespace {

constexpr int kAttempts = 20;
// Reads of a segment without progress before it counts as damaged. If a write was in progress, the
// second read finds it complete.
constexpr int kReads = 3;

struct OpenSegment {
  std::uint64_t sequence;
  FileId file;
};

std::vector<std::uint64_t> sequences_in(const std::vector<FileInfo>& files) {
  std::vector<std::uint64_t> sequences;
  for (const FileInfo& file : files) {
    if (const auto sequence = sequence_of(file.name)) sequences.push_back(*sequence);
  }
  std::ranges::sort(sequences);
  return sequences;
}

// Opens all segments, oldest first, without a gap. If segments are removed or created while the
// directory is listed and the files are opened, it lists the directory again.
Result<std::vector<OpenSegment>> open_all(FileReader& storage) {
  std::string reason = "no segment";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto files = TRY(storage.list());
    const std::vector<std::uint64_t> sequences = sequences_in(files);
    std::vector<OpenSegment> segments;
    for (const std::uint64_t sequence : sequences) {
      if (!segments.empty() && sequence != segments.back().sequence + 1) {
        reason = fmt::format("{} is missing", segment_name(segments.back().sequence + 1));
        break;
      }
      auto file = storage.open(segment_name(sequence));
      if (!file) {
        reason = file.error().message;
        break;
      }
      segments.push_back({sequence, *file});
    }
    if (!segments.empty() && segments.size() == sequences.size()) return segments;
    for (const OpenSegment& segment : segments) storage.close(segment.file);
  }
  return Error{reason};
}

// How far the image of a segment holds whole, consecutive batches.
struct Extent {
  std::uint64_t used = kSegmentHeaderBytes;
  std::uint64_t broken_at = kSegmentHeaderBytes;  // the bytes here do not continue the log
  Lsn next_lsn = 0;
  bool begun = false;      // a whole batch was read that continues the log
  bool ends_here = false;  // nothing is written from broken_at
  bool hole = false;       // another whole batch follows after broken_at
};

bool has_batch(SegmentReader& reader, std::uint64_t directory) {
  while (const auto batch = reader.find_batch()) {
    if (batch->directory == directory) return true;
  }
  return false;
}

// Ignores batches of another identity: the body of a job may contain bytes that look like a batch.
Extent measure(std::string_view image, const SegmentHeader& header, std::optional<Lsn> follows) {
  Extent extent;
  SegmentReader reader(image, header.sequence, WallClock{});
  std::optional<Lsn> expected = follows;
  std::uint32_t lacking = 0;  // facts of the batch still to come
  for (;; extent.broken_at = reader.offset()) {
    const Parsed parsed = reader.next();
    if (parsed.kind != Parsed::Kind::record) break;
    const auto* batch = std::get_if<BatchHeader>(&parsed.record);
    if ((batch != nullptr) != (lacking == 0)) break;
    if (batch == nullptr) {
      --lacking;
    } else {
      if (batch->directory != header.directory) break;
      if (expected && batch->lsn != *expected) break;
      expected = batch->lsn + batch->facts;
      lacking = batch->facts;
    }
    if (lacking > 0) continue;
    extent.begun = true;
    extent.next_lsn = *expected;
    extent.used = reader.offset();
  }
  const std::size_t end = std::min<std::size_t>(extent.broken_at, image.size());
  extent.ends_here = lacking == 0 && all_zeros(image.substr(end));
  reader.seek(extent.broken_at);
  extent.hole = has_batch(reader, header.directory);
  return extent;
}

// Copies segment by segment.
//
// The copy ends with a whole batch, and recovery will compare the number of jobs with the number in
// that batch. They agree: a segment that was missing from the list had been removed, so the batches
// that replace it were complete by then. Those batches are in listed files, all of which were
// opened before the first was read. A segment that is removed later is in the copy.
//
// Where the log seems to end, all later segments are searched. A whole batch in one of them means
// that the log continues there. Then either a write was in progress while a file was read, and
// another read, starting with the previous segment, finds the missing bytes; or the journal is
// damaged. On a full disk the server reuses the file of a dead segment, so a file may change after
// it was opened: if its name has disappeared, the copy is started again. It is also started again
// if recovery would refuse it and the segments have changed: if one segment is created and another
// removed during the listing, the list may lack both.
class Backup {
 public:
  Backup(FileReader& from, FileWriter& to, FileReader* copy) : from_(from), to_(to), copy_(copy) {}

  Result<BackupReport> run() {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      segments_ = TRY(open_all(from_));
      auto copied = copy_all();
      for (const OpenSegment& segment : segments_) from_.close(segment.file);
      if (copied && *copied == Copied::all) copied = verify();
      if (copied && *copied == Copied::all) return report();
      // An incomplete copy must not look like a journal.
      TRY(shrink_to(0));
      if (!copied) return copied.error();
    }
    return outrun_;
  }

 private:
  enum class Copied : std::uint8_t { all, outrun };
  struct Look {
    std::string image;
    SegmentHeader header;
    Extent extent;
  };
  struct Stored {
    std::uint64_t bytes;
    std::optional<Lsn> next_lsn;  // after its last batch
  };

  Result<Copied> copy_all() {
    std::size_t furthest = 0;
    std::uint64_t reached = 0;  // offset in segment `furthest`
    int reads = 0;              // of that segment, without progress
    while (stored_.size() < segments_.size()) {
      const std::size_t index = stored_.size();
      auto look = look_at(index);
      if (!look) return give_up(look.error());
      const Extent extent = look->extent;
      if (index > furthest || (index == furthest && extent.broken_at > reached)) {
        reads = 0;
        reached = extent.broken_at;
      }
      furthest = std::max(furthest, index);
      const bool ends = !extent.begun || !extent.ends_here;
      auto breaks = ends && !extent.hole ? has_batch_after(index) : Result<bool>(extent.hole);
      if (!breaks) return give_up(breaks.error());
      if (!*breaks) {
        // Older segments are removed only after a whole batch was written in a later segment.
        if (index == 0 && !extent.begun && segments_[0].sequence > 1) {
          return give_up({fmt::format("{} is damaged at offset {}: no group is whole here or later",
                                      segment_name(segments_[0].sequence), extent.broken_at)});
        }
        if (index == 0 || extent.begun) TRY(store(std::move(*look)));
        if (ends) return Copied::all;
      } else if (index == furthest && ++reads == kReads) {
        return give_up(
            {fmt::format("{} is damaged at offset {}: the log breaks off here, and goes "
                         "on later",
                         segment_name(segments_[index].sequence), extent.broken_at)});
      } else if (index > 0 && !extent.begun) {
        TRY(shrink_to(index - 1));
      }
    }
    return Copied::all;
  }

  Result<Look> look_at(std::size_t index) {
    const OpenSegment& segment = segments_[index];
    auto image = TRY(from_.read(segment.file));
    const std::string name = segment_name(segment.sequence);
    const auto header = decode_header(image, segment.sequence);
    if (!header) return Error{fmt::format("{} {}", name, header.error().message)};
    if (index == 0) directory_ = header.value().directory;
    if (header.value().directory != directory_) {
      return Error{fmt::format("{} belongs to another journal", name)};
    }
    const auto follows = index == 0 ? std::nullopt : stored_[index - 1].next_lsn;
    const Extent extent = measure(image, header.value(), follows);
    return Look{.image = std::move(image), .header = header.value(), .extent = extent};
  }

  Result<bool> has_batch_after(std::size_t index) {
    for (const OpenSegment& segment : std::span(segments_).subspan(index + 1)) {
      auto image = TRY(from_.read(segment.file));
      SegmentReader reader(image, segment.sequence, WallClock{});
      if (has_batch(reader, directory_)) return true;
    }
    return false;
  }

  // Returns the error, unless a file was removed or reused while it was read.
  Result<Copied> give_up(const Error& error) {
    auto files = TRY(from_.list());
    const std::vector<std::uint64_t> there = sequences_in(files);
    const std::size_t copied = stored_.empty() ? 0 : stored_.size() - 1;
    for (const OpenSegment& segment : std::span(segments_).subspan(copied)) {
      if (!std::ranges::binary_search(there, segment.sequence)) return Copied::outrun;
    }
    return error;
  }

  // Reads the copy as recovery does.
  Result<Copied> verify() {
    if (copy_ == nullptr || TUBED_PLANTED(backup_is_not_verified)) return Copied::all;
    IgnoreRecords ignore;
    const auto found = examine(*copy_, WallClock{}, ignore, nullptr);
    if (found && !found->cut) return Copied::all;
    const Error error =
        found ? Error{"the end of the copy is torn: " + found->cut->reason} : Error{found.error()};
    auto files = TRY(from_.list());
    const bool same =
        std::ranges::equal(sequences_in(files), segments_, {}, {},
                           [](const OpenSegment& segment) { return segment.sequence; });
    if (same) return error;
    outrun_ = error;
    return Copied::outrun;
  }

  Result<void> store(Look look) {
    const Extent& extent = look.extent;
    look.image.resize(extent.used);
    auto kept = to_.store(segment_name(look.header.sequence), look.image);
    if (!kept) return kept;
    const auto next = extent.begun ? std::optional(extent.next_lsn) : std::nullopt;
    stored_.push_back({extent.used, next});
    return {};
  }

  // Newest first, so the remaining segments have no gap.
  Result<void> shrink_to(std::size_t count) {
    for (; stored_.size() > count; stored_.pop_back()) {
      const std::uint64_t sequence = segments_[stored_.size() - 1].sequence;
      TRY(to_.remove_now(segment_name(sequence)));
    }
    return {};
  }

  BackupReport report() const {
    BackupReport report{
        .segments = stored_.size(), .bytes = 0, .next_lsn = stored_.back().next_lsn.value_or(0)};
    for (const Stored& stored : stored_) report.bytes += stored.bytes;
    return report;
  }

  FileReader& from_;
  FileWriter& to_;
  FileReader* const copy_;
  Error outrun_{"segments are reused faster than they can be copied"};
  std::vector<OpenSegment> segments_;
  std::vector<Stored> stored_;   // of the first segments_
  std::uint64_t directory_ = 0;  // the journal's identity
};

}  // namespace

Result<BackupReport> back_up(FileReader& from, FileWriter& to, FileReader* copy) {
  return Backup(from, to, copy).run();
}

}  // namespace tubed::journal
