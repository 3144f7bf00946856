#include "journal/salvage.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "journal/segment.h"

// read_around_damage() reads one segment, and is also used by the dump. Salvager runs it over all
// segments. It first determines the identity of the journal by a vote of the segments, because each
// of them may be damaged, and then copies every record of that identity into a LogCopy, which
// writes a new journal.
namespace tubed::journal {

namespace {

// The end of the last byte that is not zero, rounded up to the alignment of records. Nothing was
// written after it.
std::uint64_t end_of_data(std::string_view image) {
  const std::size_t last = image.find_last_not_of('\0');
  if (last == std::string_view::npos) return 0;
  const std::size_t end = (last / kRecordAlignment + 1) * kRecordAlignment;
  return std::min(end, image.size());
}

bool find_batch_of(std::uint64_t directory, SegmentReader& reader) {
  while (const auto batch = reader.find_batch()) {
    if (batch->directory != directory) continue;
    reader.seek(batch->offset);
    return true;
  }
  return false;
}

bool is_foreign(const Record& record, std::uint64_t directory) {
  const auto* batch = std::get_if<BatchHeader>(&record);
  return batch != nullptr && batch->directory != directory;
}

}  // namespace

std::optional<std::uint64_t> identity_of(std::string_view image, std::uint64_t sequence) {
  if (const auto header = decode_header(image, sequence)) return header.value().directory;
  if (const auto batch = SegmentReader(image, sequence, WallClock{}).find_batch()) {
    return batch->directory;
  }
  return {};
}

void read_around_damage(std::string_view image, std::uint64_t sequence, std::uint64_t directory,
                        const WallClock& clock, RecordSink& sink,
                        const std::function<void(const LostRange&)>& lost) {
  SegmentReader reader(image, sequence, clock);
  for (;;) {
    const std::uint64_t at = reader.offset();
    const Parsed parsed = reader.next();
    const bool whole = parsed.kind == Parsed::Kind::record;
    if (whole && !is_foreign(parsed.record, directory)) {
      sink.record(sequence, at, parsed.bytes, parsed.record);
      continue;
    }
    std::string reason(parsed.reason);
    if (parsed.kind == Parsed::Kind::end) reason = "nothing is written here, but something behind";
    if (whole) reason = "the group belongs to another journal";
    reader.seek(at + kRecordAlignment);
    const bool goes_on = find_batch_of(directory, reader);
    const std::uint64_t to = goes_on ? reader.offset() : end_of_data(image);
    if (to > at) lost({.from = at, .to = to, .reason = std::move(reason)});
    if (!goes_on) return;
  }
}

namespace {

class Salvager final : public RecordSink {
 public:
  Salvager(Storage& from, LogCopy& into, const WallClock& clock, const PrintLine& print)
      : from_(from), into_(into), clock_(clock), print_(print) {}

  Result<SalvageReport> run() {
    auto segments = TRY(list_segments(from_));
    if (segments.empty()) return Error{"there is no segment of a journal"};
    TRY(find_identity(segments));
    std::uint64_t expected = segments.front().sequence;
    for (const SegmentFile& segment : segments) {
      if (segment.sequence > expected) note_missing(expected, segment.sequence - 1);
      expected = segment.sequence + 1;
      copy(segment);
    }
    TRY(into_.finish());
    sum_up();
    return std::move(report_);
  }

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t,
              const Record& record) override {
    read_something_ = true;
    if (const auto* batch = std::get_if<BatchHeader>(&record)) return take(segment, offset, *batch);
    into_.fact(std::get<Fact>(record));
    ++report_.facts;
    ++next_lsn_;
  }

 private:
  // The identity that most segments have; among equals, the first that is found.
  Result<void> find_identity(const std::vector<SegmentFile>& segments) {
    std::map<std::uint64_t, std::size_t> votes;
    std::size_t most = 0;
    for (const SegmentFile& segment : segments) {
      const auto image = read_segment(from_, segment.sequence);
      if (!image) continue;  // copy() reports it
      if (has_unknown_version(image.value())) {
        const auto header = decode_header(image.value(), segment.sequence);
        return Error{segment_name(segment.sequence) + " " + header.error().message};
      }
      const auto identity = identity_of(image.value(), segment.sequence);
      if (!identity) continue;
      if (const std::size_t count = ++votes[*identity]; count > most) {
        most = count;
        directory_ = *identity;
      }
    }
    return {};
  }

  void copy(const SegmentFile& segment) {
    const auto image = read_segment(from_, segment.sequence);
    if (!image) {
      return note_lost(segment.sequence, {.from = 0,
                                          .to = segment.bytes,
                                          .reason = "it cannot be read: " + image.error().message});
    }
    const auto header = decode_header(image.value(), segment.sequence);
    if (!header) {
      print_(fmt::format("{} {}", segment_name(segment.sequence), header.error().message));
      const std::uint64_t to = std::min<std::uint64_t>(kSegmentHeaderBytes, image.value().size());
      report_.lost.push_back({.file = segment_name(segment.sequence),
                              .range = {.from = 0, .to = to, .reason = header.error().message}});
    } else if (header.value().directory != directory_) {
      return note_lost(
          segment.sequence,
          {.from = 0, .to = end_of_data(image.value()), .reason = "it belongs to another journal"});
    }
    read_something_ = false;
    read_around_damage(image.value(), segment.sequence, directory_, clock_, *this,
                       [&](const LostRange& range) { note_lost(segment.sequence, range); });
    if (read_something_) ++report_.segments;
  }

  void take(std::uint64_t segment, std::uint64_t offset, const BatchHeader& batch) {
    into_.use_ids_below(batch.next_job_id);
    // Nothing is known about facts before the oldest segment.
    if (begun_ && batch.lsn > next_lsn_) {
      const std::uint64_t missing = batch.lsn - next_lsn_;
      report_.lost_facts += missing;
      print_(
          fmt::format("before {}:{} {} facts are missing", segment_name(segment), offset, missing));
    }
    begun_ = true;
    next_lsn_ = batch.lsn;
  }

  void note_missing(std::uint64_t first, std::uint64_t last) {
    report_.missing.push_back({.first = first, .last = last});
    print_(first == last
               ? fmt::format("{} is missing", segment_name(first))
               : fmt::format("{} to {} are missing", segment_name(first), segment_name(last)));
  }

  void note_lost(std::uint64_t sequence, LostRange range) {
    const std::string name = segment_name(sequence);
    print_(fmt::format("{}:{} is lost up to {}: {}", name, range.from, range.to, range.reason));
    report_.lost.push_back({.file = name, .range = std::move(range)});
  }

  void sum_up() {
    print_(fmt::format("copied {} facts of {} segments", report_.facts, report_.segments));
    if (report_.complete()) return print_("nothing is lost");
    if (report_.lost_facts > 0) {
      return print_(fmt::format("at least {} facts are lost", report_.lost_facts));
    }
    print_("how many facts are lost is not known");
  }

  Storage& from_;
  LogCopy& into_;
  WallClock clock_;
  const PrintLine& print_;
  SalvageReport report_;
  std::uint64_t directory_ = 0;
  bool begun_ = false;  // a batch was read
  Lsn next_lsn_ = 0;
  bool read_something_ = false;  // of the segment that is being read
};

}  // namespace

Result<SalvageReport> salvage(Storage& from, LogCopy& into, const WallClock& clock,
                              const PrintLine& print) {
  return Salvager(from, into, clock, print).run();
}

}  // namespace tubed::journal
