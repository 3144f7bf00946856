#include "journal/dump.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/overloaded.h"
#include "journal/layout.h"
#include "journal/live.h"
#include "journal/salvage.h"
#include "journal/segment.h"
#include "text/quoting.h"

// FieldPrinter walks through the list of fields of a record (layout.h), as the encoder does, so a
// new field appears in the dump without a change here. A field has a key and an order; fields
// without a key are not printed. Times are converted with the clock that was used to read the
// records.
namespace tubed::journal {

namespace {

using Line = std::back_insert_iterator<std::string>;

// Of bytes in any encoding.
std::string in_quotes(std::string_view text) {
  return quoted(text, kByteEscape, true);
}

// Prints each field as " key=value", sorted by its order.
class FieldPrinter {
 public:
  FieldPrinter(const WallClock& clock, Bodies bodies) : clock_(clock), bodies_(bodies) {}

  template <auto... Path, class Record>
  void field(const layout::Value<Path...>& field, const Record& record) {
    value(field.shown, field.in(record));
  }
  template <auto Path, class Record>
  void field(const layout::Place<Path>& field, const Record& record) {
    const Placement& place = field.in(record);
    if (place.state == JobState::delayed && place.until == kNever) {
      add_text(field.shown.order, "held");
    } else if (place.state == JobState::delayed) {
      value({"until", field.shown.order}, place.until);
    }
    if (place.state == JobState::buried) value({"order", field.shown.order}, place.bury_order);
  }
  template <auto Path, class Number, std::size_t Bytes, class Record>
  void field(const layout::Member<layout::LengthTag<Number>, Path, Bytes>& field,
             const Record& record) {
    value(field.shown, field.in(record).size());
  }
  template <std::size_t Count, class Record>
  void field(const layout::Zeros<Count>& /*field*/, const Record& /*record*/) {}
  template <auto Path, class Record>
  void field(const layout::Text<Path>& field, const Record& record) {
    add(field.shown, in_quotes(field.in(record)));
  }
  template <class Record>
  void field(const layout::TagsLength& /*field*/, const Record& /*record*/) {}
  void field(const layout::Tags& field, const AddedWithTags& added) {
    const std::string tags = text_of(added.tags);
    if (!tags.empty()) add(field.shown, in_quotes(tags));
    if (added.tags.ttr_short_by_ms > 0) {
      value({"ttr-short-by-ms", field.shown.order}, std::uint64_t{added.tags.ttr_short_by_ms});
    }
    marks(field.shown, added.marks);
  }
  void field(const layout::Tags& field, const PlacedWithMarks& placed) {
    marks(field.shown, placed.marks);
  }
  template <auto Path, class Record>
  void field(const layout::Body<Path>& field, const Record& record) {
    if (bodies_ == Bodies::text) add(field.shown, in_quotes(field.in(record).view()));
  }

  void print(Line line) {
    std::ranges::stable_sort(fields_, {}, &PrintedField::order);
    for (const PrintedField& field : fields_) fmt::format_to(line, " {}", field.text);
  }

 private:
  struct PrintedField {
    int order;
    std::string text;
  };

  void marks(const layout::Shown& shown, const JobMarks& marks) {
    const auto counted = [&](std::string_view key, std::uint32_t number) {
      if (number > 0) add_text(shown.order, fmt::format("{}={}", key, number));
    };
    counted("reserves-before", marks.reserves);
    counted("timeouts-before", marks.timeouts);
    counted("releases-before", marks.releases);
    if (marks.after_done) add_text(shown.order, "after-done");
    if (marks.reason != DeathReason::none) {
      add_text(shown.order, fmt::format("dead-reason={}", word_of(marks.reason)));
    }
    if (marks.dead_from.empty()) return;
    add_text(shown.order, fmt::format("dead-from={}", in_quotes(marks.dead_from)));
  }
  void add(const layout::Shown& shown, std::string_view value) {
    if (!shown.key.empty()) add_text(shown.order, fmt::format("{}={}", shown.key, value));
  }
  void add_text(int order, std::string text) { fields_.push_back({order, std::move(text)}); }

  template <class T>
  requires std::is_integral_v<T>
  void value(const layout::Shown& shown, T number) {
    switch (shown.form) {
      case layout::Form::number:
        return add(shown, fmt::format("{}", number));
      case layout::Form::hexadecimal:
        return add(shown, fmt::format("{:016x}", number));
      case layout::Form::wall_time:
        return add(shown, utc_text(static_cast<std::int64_t>(number)));
    }
  }
  void value(const layout::Shown& shown, bool flag) {
    if (flag) add_text(shown.order, std::string(shown.key));
  }
  void value(const layout::Shown& shown, Seconds seconds) { value(shown, seconds.count); }
  void value(const layout::Shown& shown, Time time) { add(shown, utc_text(clock_.to_wall(time))); }
  void value(const layout::Shown& shown, JobState state) { add(shown, name_of(state)); }
  void value(const layout::Shown& shown, const JobCounters& counters) {
    std::string text;
    layout::for_each_counter(counters, [&text](const char* key, std::uint32_t counter) {
      fmt::format_to(Line(text), "{}{}={}", text.empty() ? "" : " ", key, counter);
    });
    add_text(shown.order, std::move(text));
  }

  const WallClock& clock_;
  Bodies bodies_;
  std::vector<PrintedField> fields_;
};

template <class T>
void print_record(Line line, const T& record, const WallClock& clock, Bodies bodies) {
  FieldPrinter printer(clock, bodies);
  layout::for_each_field<T>([&](const auto& field) { printer.field(field, record); });
  fmt::format_to(line, "{}", layout::Layout<T>::name);
  printer.print(line);
}

// Prints the header, and returns the identity of the journal to which the records belong.
std::uint64_t print_header(std::string_view image, std::uint64_t sequence,
                           const std::function<void(std::string_view)>& print) {
  const std::string name = segment_name(sequence);
  const auto header = decode_header(image, sequence);
  if (header) {
    print(fmt::format("{}:0 segment journal={:016x} created={} bytes={}", name,
                      header.value().directory, utc_text(header.value().created), image.size()));
  } else {
    print(fmt::format("{} {}", name, header.error().message));
  }
  return identity_of(image, sequence).value_or(0);
}

}  // namespace

void RecordPrinter::record(std::uint64_t segment, std::uint64_t offset, std::size_t,
                           const Record& record) {
  std::string text = fmt::format("{}:{} ", segment_name(segment), offset);
  const Line line(text);
  const auto print = [&](const auto& any) { print_record(line, any, clock_, bodies_); };
  std::visit(Overloaded{[&](const BatchHeader& batch) { print(batch); },
                        [&](const Fact& fact) { std::visit(print, fact); }},
             record);
  print_(text);
}

namespace {

// Reads of a segment that does not decode completely.
constexpr int kSegmentReads = 5;

struct Look {
  std::string image;
  std::vector<LostRange> lost;
};

Result<Look> look_at(FileReader& storage, FileId file, std::uint64_t sequence) {
  Look look;
  look.image = TRY(storage.read(file));
  if (has_unknown_version(look.image)) return look;
  IgnoreRecords ignore;
  read_around_damage(look.image, sequence, identity_of(look.image, sequence).value_or(0),
                     WallClock{}, ignore,
                     [&](const LostRange& range) { look.lost.push_back(range); });
  return look;
}

bool agree(const Look& one, const Look& other) {
  return std::ranges::equal(one.lost, other.lost, [](const LostRange& a, const LostRange& b) {
    return a.from == b.from && a.to == b.to;
  });
}

// A range that does not decode may be a write in progress: reads the file until two reads agree.
Result<Look> read_settled(FileReader& storage, const OpenSegments::Segment& segment) {
  const FileId file = TRY(segment.opened());
  auto look = TRY(look_at(storage, file, segment.sequence));
  for (int read = 1; read < kSegmentReads && !look.lost.empty(); ++read) {
    auto next = TRY(look_at(storage, file, segment.sequence));
    const bool settled = agree(look, next);
    look = std::move(next);
    if (settled) break;
  }
  return look;
}

}  // namespace

Result<void> dump(FileReader& storage, const std::function<void(std::string_view)>& print,
                  Bodies bodies) {
  constexpr WallClock kWallTime;
  OpenSegments opened(storage);
  TRY(opened.open());
  Result<void> result;
  RecordPrinter printer(kWallTime, bodies, print);
  for (const OpenSegments::Segment& segment : opened.segments()) {
    const std::string name = segment_name(segment.sequence);
    const auto look = read_settled(storage, segment);
    if (!look) {
      print(fmt::format("{} cannot be read: {}", name, look.error().message));
      if (result) result = look.error();
      continue;
    }
    const std::string& image = look->image;
    // The file of a removed segment may have been reused for another.
    if (!decode_header(image, segment.sequence) && TRY(opened.has_lost(segment.sequence))) {
      print(fmt::format("{} was removed while it was read", name));
      continue;
    }
    const std::uint64_t directory = print_header(image, segment.sequence, print);
    // Records of an unknown version are not damage.
    if (has_unknown_version(image)) continue;
    const auto lost = [&](const LostRange& range) {
      print(fmt::format("{}:{} does not read up to {}: {}", name, range.from, range.to,
                        range.reason));
    };
    read_around_damage(image, segment.sequence, directory, kWallTime, printer, lost);
  }
  return result;
}

std::string describe(const Examined& examined) {
  if (examined.segments.empty()) return "no segment: the journal is new\n";
  std::string text;
  const Line line(text);
  const FoundSegment& current = examined.segments[examined.current];
  std::uint64_t bytes = 0;
  for (const FoundSegment& segment : examined.segments) bytes += segment.file_bytes;
  fmt::format_to(line, "journal:     {:016x}\n", examined.directory);
  fmt::format_to(line, "segments:    {}, {} to {}, {} bytes\n", examined.segments.size(),
                 segment_name(examined.segments.front().sequence),
                 segment_name(examined.segments.back().sequence), bytes);
  fmt::format_to(line, "facts:       {}, up to number {}\n", examined.facts, examined.next_lsn);
  fmt::format_to(line, "jobs:        {}\n", examined.liveness.jobs());
  fmt::format_to(line, "ends at:     {}:{}\n", segment_name(current.sequence), current.used_bytes);
  fmt::format_to(line, "next job id: {}\n", examined.next_job_id);
  if (examined.applied) {
    fmt::format_to(line, "position:    entry {} of term {} of a replicated log\n",
                   examined.applied->index, examined.applied->term);
  }
  if (examined.cut) {
    fmt::format_to(line, "stopped:     by a crash; {}:{}: {}\n",
                   segment_name(examined.cut->segment), examined.cut->offset, examined.cut->reason);
    if (examined.cut->lost_batches > 0) {
      fmt::format_to(line, "cut:         {} whole groups behind it, of no use without it\n",
                     examined.cut->lost_batches);
    }
  } else {
    fmt::format_to(line, "stopped:     {}\n",
                   examined.clean ? "in order" : "without a farewell, or it is at work");
  }
  for (const std::string& name : examined.leftovers) {
    fmt::format_to(line, "left over:   {}\n", name);
  }
  return text;
}

std::string utc_text(std::int64_t wall) {
  using namespace std::chrono;
  constexpr std::int64_t kSecond = 1'000'000'000;
  // Rounds down, even before 1970.
  const std::int64_t fraction = (wall % kSecond + kSecond) % kSecond;
  const sys_seconds instant(seconds(wall / kSecond - (wall % kSecond < 0 ? 1 : 0)));
  const auto day = floor<days>(instant);
  const year_month_day date(day);
  const hh_mm_ss time(instant - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count(), fraction);
}

}  // namespace tubed::journal
