#include "journal/recovery.h"

#include <algorithm>

#include <fmt/format.h>

namespace tubed::journal {

namespace {

constexpr std::string_view kUnfinished = ".new";

Error damaged(std::uint64_t segment, std::uint64_t offset, std::string_view reason) {
  return Error{
      fmt::format("{} is damaged at offset {}: {}", segment_name(segment), offset, reason)};
}

// Opens a file for as long as it is read.
Result<std::string> read_file(Storage& storage, std::uint64_t sequence) {
  auto file = storage.open(segment_name(sequence));
  if (!file) return file.error();
  auto image = storage.read(*file);
  storage.close(*file);
  return image;
}

class Examiner {
 public:
  Examiner(Storage& storage, const WallClock& clock, RecordSink& sink, const Progress& progress)
      : storage_(storage), clock_(clock), sink_(sink), progress_(progress) {}

  Result<Examined> run() {
    if (auto listed = list(); !listed) return listed.error();
    for (std::size_t i = 0; i < found_.segments.size(); ++i) {
      if (auto read = read_segment(i); !read) return read.error();
      bytes_done_ += found_.segments[i].file_bytes;
      if (progress_) progress_(bytes_done_, bytes_total_);
    }
    if (ended_) {
      if (auto settled = settle_end(); !settled) return settled.error();
    } else if (begins_late()) {
      return damaged(found_.segments.front().sequence, kSegmentHeaderBytes,
                     "nothing is written here");
    }
    return std::move(found_);
  }

 private:
  Result<void> list() {
    auto files = storage_.list();
    if (!files) return files.error();
    for (const FileInfo& file : *files) {
      if (const auto sequence = sequence_of(file.name)) {
        found_.segments.push_back({*sequence, file.bytes, kSegmentHeaderBytes});
        bytes_total_ += file.bytes;
      } else if (file.name.starts_with("journal.") && file.name.ends_with(kUnfinished)) {
        found_.leftovers.push_back(file.name);
      }
    }
    std::ranges::sort(found_.segments, {}, &FoundSegment::sequence);
    for (std::size_t i = 1; i < found_.segments.size(); ++i) {
      const std::uint64_t expected = found_.segments[i - 1].sequence + 1;
      if (found_.segments[i].sequence != expected) {
        return Error{fmt::format("{} is missing", segment_name(expected))};
      }
    }
    return {};
  }

  Result<void> read_segment(std::size_t index) {
    FoundSegment& segment = found_.segments[index];
    auto image = read_file(storage_, segment.sequence);
    if (!image) return image.error();
    const auto header = decode_header(*image, segment.sequence);
    const std::string name = segment_name(segment.sequence);
    if (!header) return Error{fmt::format("{} {}", name, header.error().message)};
    if (index == 0) found_.directory = header.value().directory;
    if (header.value().directory != found_.directory) {
      return Error{fmt::format("{} belongs to another journal", name)};
    }
    SegmentReader reader(*image, segment.sequence, clock_);
    if (!ended_) {
      read_log(index, reader, *image);
      if (ended_) reader.seek(found_.cut->offset);
    }
    if (!ended_) return {};
    gather_evidence(reader);
    const std::string_view records = std::string_view(*image).substr(kSegmentHeaderBytes);
    if (records.find_first_not_of('\0') != std::string_view::npos) last_touched_ = index;
    return {};
  }

  // Takes records until the segment or the log ends.
  void read_log(std::size_t index, SegmentReader& reader, std::string_view image) {
    FoundSegment& segment = found_.segments[index];
    bool in_group = false;
    for (;;) {
      const std::uint64_t offset = reader.offset();
      const Parsed parsed = reader.next();
      if (parsed.kind == Parsed::Kind::bad)
        return end_log(index, offset, std::string(parsed.reason));
      if (parsed.kind == Parsed::Kind::end) {
        const std::string_view rest = image.substr(std::min<std::size_t>(offset, image.size()));
        if (rest.find_first_not_of('\0') != std::string_view::npos) {
          end_log(index, offset, "nothing is written here, but something behind it");
        }
        return;
      }
      if (const auto* group = std::get_if<Group>(&parsed.record)) {
        if (!continues(index, *group)) {
          return end_log(index, offset,
                         fmt::format("fact {} should follow, and fact {} does", found_.next_number,
                                     group->number));
        }
        take_group(index, *group);
        in_group = true;
      } else if (in_group) {
        take_fact(parsed.record);
      } else {
        return end_log(index, offset, "a fact stands before any group");
      }
      segment.used_bytes = offset + parsed.bytes;
      sink_.record(segment.sequence, offset, parsed.bytes, parsed.record);
    }
  }

  bool continues(std::size_t index, const Group& group) const {
    if (group.directory != found_.directory) return false;
    if (begun_) return group.number == found_.next_number;
    return index == 0 && (found_.segments.front().sequence != 1 || group.number == 0);
  }

  // Older segments went only when this one had a group that was on the disk.
  bool begins_late() const {
    return !begun_ && !found_.segments.empty() && found_.segments.front().sequence > 1;
  }

  void take_group(std::size_t index, const Group& group) {
    begun_ = true;
    found_.current = index;
    found_.next_number = group.number;
    found_.next_job_id = std::max(found_.next_job_id, group.next_job_id);
    found_.clean = group.clean;
  }

  void take_fact(const Record& record) {
    ++found_.next_number;
    ++found_.facts;
    found_.clean = false;
    JobId id = 0;
    if (const auto* added = std::get_if<Added>(&record)) id = added->id;
    if (const auto* removed = std::get_if<Removed>(&record)) id = removed->id;
    found_.next_job_id = std::max(found_.next_job_id, id + 1);
  }

  void end_log(std::size_t index, std::uint64_t offset, std::string reason) {
    ended_ = true;
    found_.cut = Cut{.segment = found_.segments[index].sequence,
                     .offset = offset,
                     .reason = std::move(reason),
                     .lost_groups = 0};
  }

  // Whole groups behind the end of the log tell how much of it was once on disk.
  void gather_evidence(SegmentReader& reader) {
    while (const auto group = reader.find_group()) {
      if (group->directory != found_.directory) continue;
      ++found_.cut->lost_groups;
      durable_ = std::max(durable_, group->durable);
    }
  }

  Result<void> settle_end() {
    const Cut& cut = *found_.cut;
    if (durable_ > found_.next_number || begins_late()) {
      return damaged(cut.segment, cut.offset, cut.reason);
    }
    found_.clean = false;
    // The log goes on behind its last whole group. What was written to later segments cannot be
    // used; segments that nothing was written to can, if no other stands between.
    const std::size_t keep = found_.current + 1;
    if (last_touched_ >= keep) {
      for (std::size_t i = found_.segments.size() - 1; i >= keep; --i) {
        found_.leftovers.push_back(segment_name(found_.segments[i].sequence));
      }
      found_.segments.resize(keep);
    }
    return {};
  }

  Storage& storage_;
  WallClock clock_;
  RecordSink& sink_;
  const Progress& progress_;
  Examined found_;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t bytes_total_ = 0;
  bool begun_ = false;            // a group was read
  bool ended_ = false;            // by something that does not read
  std::size_t last_touched_ = 0;  // of the segments from the log's end on
  LogNumber durable_ = 0;
};

// Makes a segment's file and its name durable, cut to what counts.
Result<void> settle(Storage& storage, const FoundSegment& segment, bool goes_on) {
  auto file = storage.open(segment_name(segment.sequence));
  if (!file) return file.error();
  Result<void> result;
  // The log has left it and did not come to trim it, or it is torn behind that place.
  if (!goes_on && segment.file_bytes > segment.used_bytes) {
    result = storage.truncate(*file, segment.used_bytes);
  }
  if (result) result = storage.sync_now(*file);
  storage.close(*file);
  return result;
}

}  // namespace

Result<Examined> examine(Storage& storage, const WallClock& clock, RecordSink& sink,
                         const Progress& progress) {
  return Examiner(storage, clock, sink, progress).run();
}

Result<void> repair(Storage& storage, const Examined& examined) {
  // Newest first: after another crash there is no gap.
  for (const std::string& name : examined.leftovers) {
    if (auto removed = storage.remove_now(name); !removed) return removed;
  }
  // A reply may tell of what was read here: the disk must have it, whatever the mode was.
  for (std::size_t i = 0; i < examined.segments.size(); ++i) {
    const bool torn = i == examined.current && examined.cut.has_value();
    const bool goes_on = i >= examined.current && !torn;
    if (auto done = settle(storage, examined.segments[i], goes_on); !done) return done;
  }
  return {};
}

}  // namespace tubed::journal
