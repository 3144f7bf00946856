#include "journal/live.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "journal/segment.h"

namespace tubed::journal {

namespace {

constexpr int kLiveAttempts = 20;
// Reads of the same open files.
constexpr int kLiveReads = 3;
// This many agreeing reads are trusted even if the segments change.
constexpr int kAgreeingReads = 2 * kLiveReads;

// Gives examine() the files of OpenSegments.
class OpenReader final : public FileReader {
 public:
  OpenReader(FileReader& storage, const OpenSegments& opened)
      : storage_(storage), opened_(opened) {}

  Result<std::vector<FileInfo>> list() override {
    std::vector<FileInfo> files = opened_.others();
    for (const auto& segment : opened_.segments()) {
      files.push_back({segment_name(segment.sequence), segment.bytes});
    }
    return files;
  }
  Result<FileId> open(const std::string& name) override {
    for (const auto& segment : opened_.segments()) {
      if (segment_name(segment.sequence) == name) return segment.opened();
    }
    return Error{name + " was not opened"};
  }
  void close(FileId /*file*/) override {}
  Result<std::string> read(FileId file) override { return storage_.read(file); }

 private:
  FileReader& storage_;
  const OpenSegments& opened_;
};

std::string text_of(const Result<Examined>& found) {
  if (!found) return found.error().message;
  return fmt::format("{} is torn at offset {}: {}", segment_name(found->cut->segment),
                     found->cut->offset, found->cut->reason);
}

}  // namespace

OpenSegments::~OpenSegments() {
  close();
}

void OpenSegments::close() {
  for (const Segment& segment : segments_) {
    if (segment.file) storage_.close(*segment.file);
  }
  segments_.clear();
}

Result<void> OpenSegments::list() {
  auto files = TRY(storage_.list());
  others_.clear();
  for (FileInfo& file : files) {
    if (const auto sequence = sequence_of(file.name)) {
      segments_.push_back({.sequence = *sequence, .bytes = file.bytes, .file = {}, .error = {}});
    } else {
      others_.push_back(std::move(file));
    }
  }
  std::ranges::sort(segments_, {}, &Segment::sequence);
  return {};
}

// A segment that cannot be opened, or a gap, may also result from a removal during the listing.
Result<void> OpenSegments::open() {
  for (int attempt = 0; attempt < kLiveAttempts; ++attempt) {
    close();
    TRY(list());
    bool whole = true;
    std::uint64_t expected = segments_.empty() ? 0 : segments_.front().sequence;
    for (Segment& segment : segments_) {
      auto file = storage_.open(segment_name(segment.sequence));
      if (file) {
        segment.file = *file;
      } else {
        segment.error = file.error();
      }
      whole = whole && segment.file && segment.sequence == expected++;
    }
    if (whole || !TRY(changed())) return {};
  }
  return Error{"the segments are created and removed faster than they can be opened"};
}

Result<bool> OpenSegments::changed() const {
  auto listed = TRY(list_segments(storage_));
  return !std::ranges::equal(listed, segments_, {}, &SegmentFile::sequence, &Segment::sequence);
}

Result<bool> OpenSegments::has_lost(std::uint64_t sequence) const {
  auto listed = TRY(list_segments(storage_));
  return std::ranges::find(listed, sequence, &SegmentFile::sequence) == listed.end();
}

Result<Examined> examine_live(FileReader& storage, const WallClock& clock) {
  IgnoreRecords ignore;
  if (TUBED_PLANTED(live_journals_are_read_once)) return examine(storage, clock, ignore, nullptr);
  std::string previous;
  bool was_torn = false;
  int agreeing = 0;
  for (int attempt = 0; attempt < kLiveAttempts; ++attempt) {
    OpenSegments opened(storage);
    TRY(opened.open());
    OpenReader files(storage, opened);
    for (int read = 0; read < kLiveReads; ++read) {
      auto found = examine(files, clock, ignore, nullptr);
      const bool is_torn = found && found->cut;
      if (found && !is_torn) return found;
      std::string text = text_of(found);
      agreeing = text == previous ? agreeing + 1 : 1;
      if (agreeing >= kAgreeingReads || (agreeing > 1 && !TRY(opened.changed()))) return found;
      if (is_torn && was_torn && agreeing == 1) {
        found->cut.reset();
        return found;
      }
      was_torn = is_torn;
      previous = std::move(text);
    }
  }
  return Error{fmt::format(
      "the journal changes faster than it can be read ({} attempts; the last found: {}); read a "
      "backup of it, or stop the server",
      kLiveAttempts, previous)};
}

}  // namespace tubed::journal
