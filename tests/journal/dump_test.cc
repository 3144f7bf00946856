// Dumps of a journal.
#include "journal/dump.h"

#include <limits>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "journal/segment.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Image;
using sample::kClock;

using Lines = std::vector<std::string>;

Lines lines_of(TestDisk& disk, Bodies bodies = Bodies::length) {
  Lines lines;
  const auto dumped = dump(
      disk, [&](std::string_view line) { lines.emplace_back(line); }, bodies);
  CHECK(dumped);
  return lines;
}

std::string line_of(const Record& record, Bodies bodies = Bodies::length) {
  std::string text;
  RecordPrinter printer(kClock, bodies, [&](std::string_view line) { text = line; });
  printer.record(1, 64, 0, record);
  return text;
}

Image removals(std::uint64_t sequence) {
  Image image(sequence, 10);
  for (const Fact& fact : sample::removals(1, 3)) image.batch().fact(fact);
  return image;
}

bool begins(const std::string& line, std::string_view with) {
  return line.starts_with(with);
}

struct Quiet final : RecordSink {
  void record(std::uint64_t, std::uint64_t, std::size_t, const Record&) override {}
};

std::string described(TestDisk& disk) {
  Quiet quiet;
  const auto found = examine(disk, kClock, quiet, nullptr);
  REQUIRE(found);
  return describe(found.value());
}

}  // namespace

TEST_CASE("a body is printed on request, on one line") {
  const Added added = std::get<Added>(sample::every_fact()[2]);
  CHECK(line_of(added) ==
        "journal.0000000001:64 added id=3 tube=\"b\" state=buried pri=4294967295 delay=0 order=7 "
        "ttr=4294967295 created=2023-11-14T21:56:35.000000000Z bytes=13 reserves=1 timeouts=2 "
        "releases=3 buries=4 kicks=5");
  CHECK(line_of(added, Bodies::text)
            .ends_with(R"( kicks=5 body="\x00\x0d\x0a\xff\x01\x80 \"\\x\x00\x00\x00")"));
}

TEST_CASE("a quoted text has only printable ASCII characters") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  const std::string line = line_of(sample::added(1, "a", bytes), Bodies::text);
  for (const char c : line) CHECK((c >= ' ' && c <= '~'));
  CHECK(line.find(R"(\x1e\x1f !\"#)") != std::string::npos);
  CHECK(line.find(R"(|}~\x7f\x80)") != std::string::npos);
}

TEST_CASE("all times are printed in UTC") {
  CHECK(utc_text(0) == "1970-01-01T00:00:00.000000000Z");
  CHECK(utc_text(-1) == "1969-12-31T23:59:59.999999999Z");
  CHECK(utc_text(951'782'400'000'000'000) == "2000-02-29T00:00:00.000000000Z");
  CHECK(utc_text(std::numeric_limits<std::int64_t>::max()) == "2262-04-11T23:47:16.854775807Z");
  CHECK(utc_text(std::numeric_limits<std::int64_t>::min()) == "1677-09-21T00:12:43.145224192Z");
}

TEST_CASE("a reservation and a position have a line each") {
  CHECK(line_of(Held{.id = 7, .until = sample::kClock.to_monotonic(1'000'000'000)}) ==
        "journal.0000000001:64 held id=7 until=1970-01-01T00:00:01.000000000Z");
  CHECK(line_of(Applied{.index = 12, .term = 3, .chain = 0xabc}) ==
        "journal.0000000001:64 applied index=12 term=3 chain=0000000000000abc");
}

TEST_CASE("a dump has a line for each segment and each record") {
  TestDisk disk(TestDisk::Contents{{segment_name(1), removals(1).zeros(500).bytes()},
                                   {segment_name(2), removals(2).bytes()}});
  const Lines lines = lines_of(disk);
  REQUIRE(lines.size() == 14);
  CHECK(lines[0] ==
        "journal.0000000001:0 segment journal=0123456789abcdef "
        "created=2023-11-14T22:13:20.000000000Z bytes=852");
  CHECK(lines[1] ==
        "journal.0000000001:64 group number=10 facts=1 jobs=0 durable=10 next-id=1 "
        "written=2023-11-14T22:13:20.000000000Z journal=0123456789abcdef");
  CHECK(lines[2] == "journal.0000000001:136 removed id=1");
  CHECK(begins(lines[7], "journal.0000000002:0 segment"));
}

TEST_CASE("a dump reports damage with its place, and continues after it") {
  TestDisk disk(TestDisk::Contents{{segment_name(1), removals(1).bytes()}});
  disk.flip(segment_name(1), 138);
  const Lines lines = lines_of(disk);
  REQUIRE(lines.size() == 7);
  CHECK(lines[2] ==
        "journal.0000000001:136 does not read up to 160: the record does not match its checksum");
  CHECK(begins(lines[3], "journal.0000000001:160 group number=11"));
}

TEST_CASE("a dump reads a segment with a damaged header, but not one of another version") {
  TestDisk disk(TestDisk::Contents{{segment_name(1), removals(1).bytes()}});
  disk.flip(segment_name(1), 20);
  Lines lines = lines_of(disk);
  CHECK(lines.size() == 7);
  CHECK(lines[0] == "journal.0000000001 has a damaged header");

  std::string image = removals(1).bytes();
  image[8] = 9;
  store_little(image.data() + 60, crc32c(0, std::string_view(image).substr(0, 60)));
  disk.place(segment_name(1), image);
  lines = lines_of(disk);
  CHECK(lines ==
        Lines{"journal.0000000001 has format version 9; this tubed reads versions 1 to 3"});
}

TEST_CASE("a file that cannot be read is reported, and the others are printed") {
  TestDisk disk(TestDisk::Contents{{segment_name(1), removals(1).bytes()},
                                   {segment_name(2), removals(2).bytes()}});
  disk.fail_after(Operation::read, 0);
  Lines lines;
  const auto dumped = dump(disk, [&](std::string_view line) { lines.emplace_back(line); });
  CHECK_FALSE(dumped);
  CHECK(lines.size() == 8);
  CHECK(begins(lines[0], "journal.0000000001 cannot be read: "));
}

TEST_CASE("a summary says how the journal ends") {
  TestDisk none;
  CHECK(described(none) == "no segment: the journal is new\n");
  TestDisk disk(TestDisk::Contents{{segment_name(4), removals(4).batch(true).bytes()}});
  CHECK(described(disk) ==
        "journal:     0123456789abcdef\n"
        "segments:    1, journal.0000000004 to journal.0000000004, 424 bytes\n"
        "facts:       3, up to number 13\n"
        "jobs:        0\n"
        "ends at:     journal.0000000004:424\n"
        "next job id: 4\n"
        "stopped:     in order\n");
  disk.place(segment_name(4), removals(4).bytes());
  CHECK(described(disk).ends_with("stopped:     without a farewell, or it is at work\n"));
  disk.place(segment_name(4), removals(4).raw("torn").bytes());
  disk.place("journal.0000000005.new", "");
  CHECK(described(disk).ends_with(
      "stopped:     by a crash; journal.0000000004:352: the record is cut short\n"
      "left over:   journal.0000000005.new\n"));
}

}  // namespace tubed::journal
