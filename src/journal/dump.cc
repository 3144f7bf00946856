#include "journal/dump.h"

#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "journal/salvage.h"
#include "journal/segment.h"

namespace tubed::journal {

namespace {

using Line = std::back_insert_iterator<std::string>;

// In double quotes, on one line whatever the bytes are.
std::string quoted(std::string_view text) {
  std::string line = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line.append(1, '\\').append(1, c);
    } else if (byte >= 0x20 && byte < 0x7f) {
      line.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    }
  }
  line.push_back('"');
  return line;
}

void print_place(Line line, const Placement& place, const WallClock& clock) {
  fmt::format_to(line, " state={} pri={} delay={}", name_of(place.state), place.priority,
                 place.delay.count);
  if (place.state == JobState::delayed) {
    fmt::format_to(line, " until={}", utc_text(clock.to_wall(place.until)));
  }
  if (place.state == JobState::buried) fmt::format_to(line, " order={}", place.bury_order);
}

void print_counters(Line line, const JobCounters& counters) {
  fmt::format_to(line, " reserves={} timeouts={} releases={} buries={} kicks={}", counters.reserves,
                 counters.timeouts, counters.releases, counters.buries, counters.kicks);
}

void print_record(Line line, const Group& group) {
  fmt::format_to(
      line, "group number={} facts={} jobs={} durable={} next-id={} written={} journal={:016x}{}",
      group.number, group.facts, group.jobs, group.durable, group.next_job_id,
      utc_text(group.written), group.directory, group.clean ? " clean" : "");
}

void print_record(Line line, const Added& added, const WallClock& clock, Bodies bodies) {
  fmt::format_to(line, "added id={} tube={}", added.id, quoted(added.tube));
  print_place(line, added.place, clock);
  fmt::format_to(line, " ttr={} created={} bytes={}", added.ttr.count,
                 utc_text(clock.to_wall(added.created)), added.body.size());
  print_counters(line, added.counters);
  if (bodies == Bodies::text) fmt::format_to(line, " body={}", quoted(added.body.view()));
}

void print_record(Line line, const Placed& placed, const WallClock& clock) {
  fmt::format_to(line, "placed id={}", placed.id);
  print_place(line, placed.place, clock);
  print_counters(line, placed.counters);
}

void print_record(Line line, const Removed& removed) {
  fmt::format_to(line, "removed id={}", removed.id);
}

void print_record(Line line, const Paused& paused, const WallClock& clock) {
  fmt::format_to(line, "paused tube={} pause={} until={}", quoted(paused.tube),
                 paused.duration.count, utc_text(clock.to_wall(paused.until)));
}

// Prints what its header says, and returns what journal its records are to be of.
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
  if (const auto* group = std::get_if<Group>(&record)) print_record(line, *group);
  if (const auto* added = std::get_if<Added>(&record)) print_record(line, *added, clock_, bodies_);
  if (const auto* placed = std::get_if<Placed>(&record)) print_record(line, *placed, clock_);
  if (const auto* removed = std::get_if<Removed>(&record)) print_record(line, *removed);
  if (const auto* paused = std::get_if<Paused>(&record)) print_record(line, *paused, clock_);
  print_(text);
}

Result<void> dump(Storage& storage, const std::function<void(std::string_view)>& print,
                  Bodies bodies) {
  constexpr WallClock kWallTime;
  auto segments = list_segments(storage);
  if (!segments) return segments.error();
  Result<void> result;
  RecordPrinter printer(kWallTime, bodies, print);
  for (const SegmentFile& segment : *segments) {
    const auto image = read_segment(storage, segment.sequence);
    if (!image) {
      print(fmt::format("{} cannot be read: {}", segment_name(segment.sequence),
                        image.error().message));
      if (result) result = image.error();
      continue;
    }
    const std::uint64_t directory = print_header(image.value(), segment.sequence, print);
    // Another version's records must not be taken for damage.
    if (version_of(image.value()).value_or(kFormatVersion) != kFormatVersion) continue;
    const auto lost = [&](const LostRange& range) {
      print(fmt::format("{}:{} does not read up to {}: {}", segment_name(segment.sequence),
                        range.from, range.to, range.reason));
    };
    read_around_damage(image.value(), segment.sequence, directory, kWallTime, printer, lost);
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
  fmt::format_to(line, "facts:       {}, up to number {}\n", examined.facts, examined.next_number);
  fmt::format_to(line, "jobs:        {}\n", examined.ledger.jobs());
  fmt::format_to(line, "ends at:     {}:{}\n", segment_name(current.sequence), current.used_bytes);
  fmt::format_to(line, "next job id: {}\n", examined.next_job_id);
  if (examined.cut) {
    fmt::format_to(line, "stopped:     by a crash; {}:{}: {}\n",
                   segment_name(examined.cut->segment), examined.cut->offset, examined.cut->reason);
    if (examined.cut->lost_groups > 0) {
      fmt::format_to(line, "cut:         {} whole groups behind it, of no use without it\n",
                     examined.cut->lost_groups);
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
  // Rounded down before 1970 too.
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
