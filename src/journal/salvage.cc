#include "journal/salvage.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "journal/cut_files.h"
#include "journal/segment.h"

// read_around_damage() reads one segment; the dump uses it too. Salvager runs it over all segments.
// It first determines the identity of the journal by a vote of the segments, because any of them
// may be damaged, and then copies every record of that identity into a LogCopy, which writes a new
// journal.
namespace tubed::journal {

namespace {

// Returns the end of the last nonzero byte, rounded up to the alignment of records. Nothing was
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

// Distinguishes two jobs with the same id.
struct JobPrint {
  std::string tube;
  Time created;
  std::uint32_t body = 0;  // checksum

  explicit JobPrint(const Added& added)
      : tube(added.tube), created(added.created), body(crc32c(0, added.body.view())) {}
  bool operator==(const JobPrint&) const = default;
};
// By id. No value: the journal has no job with this id.
using JobPrints = std::map<JobId, std::optional<JobPrint>>;

const Added* added_by(const Record& record) {
  const auto* fact = std::get_if<Fact>(&record);
  return fact == nullptr ? nullptr : added_in(*fact);
}

// Collects the ids of the jobs that were added in cut files.
class CutIds final : public RecordSink {
 public:
  explicit CutIds(JobPrints& prints) : prints_(prints) {}
  void record(std::uint64_t, std::uint64_t, std::size_t, const Record& record) override {
    if (const Added* added = added_by(record)) prints_.try_emplace(added->id);
  }

 private:
  JobPrints& prints_;
};

// Copies the jobs of one cut.
class CutJobs final : public RecordSink {
 public:
  CutJobs(LogCopy& into, const JobPrints& prints) : into_(into), prints_(prints) {}

  std::uint64_t jobs() const { return jobs_; }

  void record(std::uint64_t, std::uint64_t, std::size_t, const Record& record) override {
    const auto* fact = std::get_if<Fact>(&record);
    if (fact == nullptr) return into_.use_ids_below(std::get<BatchHeader>(record).next_job_id);
    if (const Added* added = added_in(*fact)) choose_id(*added);
    std::visit([this](const auto& one) { copy(one); }, *fact);
  }

 private:
  void choose_id(const Added& added) {
    if (ids_.contains(added.id)) return;
    const auto known = prints_.find(added.id);
    if (known != prints_.end() && known->second == JobPrint(added)) return;
    into_.use_ids_below(added.id + 1);
    ids_[added.id] = into_.has_job(added.id) ? into_.next_job_id() : added.id;
    ++jobs_;
  }

  // Copies facts about jobs only, not pauses or policies.
  template <class T>
  void copy(const T& fact) {
    constexpr bool is_of_job = std::is_base_of_v<Added, T> || std::is_base_of_v<Placed, T> ||
                               std::is_same_v<T, Removed> || std::is_same_v<T, Moved> ||
                               std::is_same_v<T, Held>;
    if constexpr (is_of_job) {
      const auto id = ids_.find(fact.id);
      if (id == ids_.end()) return;
      T renamed = fact;
      renamed.id = id->second;
      into_.fact(renamed);
    }
  }

  LogCopy& into_;
  const JobPrints& prints_;
  std::map<JobId, JobId> ids_;  // ids in the copy by ids in the cut
  std::uint64_t jobs_ = 0;
};

class Salvager final : public RecordSink {
 public:
  Salvager(FileReader& from, LogCopy& into, const WallClock& clock, const PrintLine& print)
      : from_(from), into_(into), clock_(clock), print_(print) {}

  Result<SalvageReport> run() {
    auto segments = TRY(list_segments(from_));
    if (segments.empty()) return Error{"there is no segment of a journal"};
    TRY(find_identity(segments));
    const auto cuts = TRY(list_cut_files(from_));
    CutIds ids(prints_);
    for (const CutFile& cut : cuts) read_cut(cut, ids, false);
    std::uint64_t expected = segments.front().sequence;
    for (const SegmentFile& segment : segments) {
      if (segment.sequence > expected) note_missing(expected, segment.sequence - 1);
      expected = segment.sequence + 1;
      copy(segment);
    }
    copy_cuts(cuts);
    TRY(into_.finish());
    sum_up();
    return std::move(report_);
  }

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t,
              const Record& record) override {
    read_something_ = true;
    if (const auto* batch = std::get_if<BatchHeader>(&record)) return take(segment, offset, *batch);
    if (const Added* added = added_by(record)) {
      const auto print = prints_.find(added->id);
      if (print != prints_.end()) print->second.emplace(*added);
    }
    into_.fact(std::get<Fact>(record));
    ++report_.facts;
    ++next_lsn_;
  }

 private:
  // Finds the identity that most segments have; in a tie, the first.
  Result<void> find_identity(const std::vector<SegmentFile>& segments) {
    std::map<std::uint64_t, std::size_t> votes;
    std::size_t most = 0;
    for (const SegmentFile& segment : segments) {
      const auto image = read_segment(from_, segment.sequence);
      if (!image) continue;  // copy() reports the error
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

  void read_cut(const CutFile& cut, RecordSink& sink, bool prints) {
    const auto image = read_cut_file(from_, cut);
    if (!image) {
      if (prints) print_(fmt::format("{} cannot be read: {}", cut.name(), image.error().message));
      return;
    }
    const auto lost = [&](const LostRange& range) {
      if (!prints || range.to <= cut.offset) return;
      print_(fmt::format("{}:{} is lost up to {}: {}", cut.name(), std::max(range.from, cut.offset),
                         range.to, range.reason));
    };
    read_around_damage(image.value(), cut.segment, directory_, clock_, sink, lost);
  }

  void copy_cuts(const std::vector<CutFile>& cuts) {
    for (std::size_t i = 0; i < cuts.size();) {
      CutJobs jobs(into_, prints_);
      const std::uint64_t number = cuts[i].number;
      for (; i < cuts.size() && cuts[i].number == number; ++i) read_cut(cuts[i], jobs, true);
      report_.cut_jobs += jobs.jobs();
    }
    if (cuts.empty()) return;
    print_(fmt::format("copied {} jobs that were cut by earlier starts", report_.cut_jobs));
  }

  void take(std::uint64_t segment, std::uint64_t offset, const BatchHeader& batch) {
    into_.use_ids_below(batch.next_job_id);
    // Facts before the oldest segment are unknown.
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

  FileReader& from_;
  LogCopy& into_;
  WallClock clock_;
  const PrintLine& print_;
  SalvageReport report_;
  std::uint64_t directory_ = 0;
  JobPrints prints_;    // jobs of the cut files, as in the journal
  bool begun_ = false;  // a batch was read
  Lsn next_lsn_ = 0;
  bool read_something_ = false;  // from the current segment
};

}  // namespace

Result<SalvageReport> salvage(FileReader& from, LogCopy& into, const WallClock& clock,
                              const PrintLine& print) {
  return Salvager(from, into, clock, print).run();
}

}  // namespace tubed::journal
