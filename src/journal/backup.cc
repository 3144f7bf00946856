#include "journal/backup.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "journal/segment.h"

namespace tubed::journal {

namespace {

constexpr int kAttempts = 20;

struct OpenSegment {
  std::uint64_t sequence;
  FileId file;
};

// All segments, oldest first. Compaction may remove one between the look and the opening: then the
// look was in vain.
Result<std::vector<OpenSegment>> open_all(Storage& storage) {
  std::string reason = "no segment";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto files = storage.list();
    if (!files) return files.error();
    std::vector<std::uint64_t> sequences;
    for (const FileInfo& file : *files) {
      if (const auto sequence = sequence_of(file.name)) sequences.push_back(*sequence);
    }
    std::ranges::sort(sequences);
    std::vector<OpenSegment> segments;
    for (const std::uint64_t sequence : sequences) {
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

// How far a segment's image holds whole groups that follow each other.
struct Extent {
  std::uint64_t used = kSegmentHeaderBytes;
  LogNumber next_number = 0;
  bool begun = false;  // a whole group was read, and it continues what came before
  bool hole = false;   // behind the end stands another whole group
};

// A group of another identity is no group: a job's body may hold what looks like one.
Extent measure(std::string_view image, const SegmentHeader& header,
               std::optional<LogNumber> follows) {
  Extent extent;
  SegmentReader reader(image, header.sequence, WallClock{});
  std::uint64_t broken_at = reader.offset();
  std::optional<LogNumber> expected = follows;
  std::uint32_t lacking = 0;  // facts that the group still has to have
  for (;; broken_at = reader.offset()) {
    const Parsed parsed = reader.next();
    if (parsed.kind != Parsed::Kind::record) break;
    const auto* group = std::get_if<Group>(&parsed.record);
    if ((group != nullptr) != (lacking == 0)) break;
    if (group == nullptr) {
      --lacking;
    } else {
      if (group->directory != header.directory) break;
      if (expected && group->number != *expected) break;
      expected = group->number + group->facts;
      lacking = group->facts;
    }
    if (lacking > 0) continue;
    extent.begun = true;
    extent.next_number = *expected;
    extent.used = reader.offset();
  }
  reader.seek(broken_at);
  while (const auto group = reader.find_group()) {
    extent.hole = extent.hole || group->directory == header.directory;
  }
  return extent;
}

// The copy ends with a whole group, and recovery will count its jobs. The count is right: a segment
// that was missing when the files were listed had been removed, and so the groups that made it
// needless were whole and written by then. They stand in files that were listed, all of which were
// open before the first was read, so they are in the copy. A segment that goes later is in it too.
class Backup {
 public:
  Backup(Storage& from, Storage& to) : from_(from), to_(to) {}

  Result<BackupReport> run() {
    auto segments = open_all(from_);
    if (!segments) return segments.error();
    Result<void> result;
    bool goes_on = true;
    for (const OpenSegment& segment : *segments) {
      if (goes_on && result) {
        auto copied = copy(segment);
        goes_on = copied && *copied;
        if (!copied) result = copied.error();
      }
      from_.close(segment.file);
    }
    if (!result) return result.error();
    return report_;
  }

 private:
  // False: the log ends before or in this segment.
  Result<bool> copy(const OpenSegment& segment) {
    const std::string name = segment_name(segment.sequence);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto image = from_.read(segment.file);
      if (!image) return image.error();
      const auto header = decode_header(*image, segment.sequence);
      if (!header) {
        return Error{fmt::format("{} {}", name, header.error().message)};
      }
      const Extent extent = measure(*image, header.value(), follows_);
      const bool first = report_.segments == 0;
      if (!extent.begun && !first) return false;
      // A write was going on while the file was read: what was missing is there by now.
      if (extent.hole) continue;
      image->resize(extent.used);
      if (auto stored = to_.store(name, *image); !stored) return stored.error();
      ++report_.segments;
      report_.bytes += extent.used;
      if (extent.begun) follows_ = report_.next_number = extent.next_number;
      return extent.begun;
    }
    return Error{fmt::format("{} is damaged", name)};
  }

  Storage& from_;
  Storage& to_;
  std::optional<LogNumber> follows_;  // what the next group begins with
  BackupReport report_;
};

}  // namespace

Result<BackupReport> back_up(Storage& from, Storage& to) {
  return Backup(from, to).run();
}

}  // namespace tubed::journal
