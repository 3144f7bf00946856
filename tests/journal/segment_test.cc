// Names, headers, and the records that a reader finds in a complete, cut or changed segment.
#include "journal/segment.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Image;
using sample::kClock;
using sample::kDirectory;

// Two batches, and between them a fact of each kind and state.
Image sample_image(std::uint64_t sequence = 3) {
  Image image(sequence, 100);
  image.batch();
  const auto facts = sample::every_fact();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (i == 4) image.batch();
    image.fact(facts[i]);
  }
  return image;
}

struct Walk {
  std::vector<Record> records;
  Parsed end;
};

Walk walk(std::string_view image, std::uint64_t sequence = 3) {
  Walk walk;
  SegmentReader reader(image, sequence, kClock);
  for (;;) {
    walk.end = reader.next();
    if (walk.end.kind != Parsed::Kind::record) return walk;
    walk.records.push_back(walk.end.record);
  }
}

bool is_beginning(const std::vector<Record>& part, const std::vector<Record>& whole) {
  return part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin(),
                    [](const Record& a, const Record& b) { return sample::same(a, b); });
}

std::string header_of_version(std::uint32_t version) {
  return encode_header({.directory = 1, .sequence = 3, .created = 4, .version = version});
}

std::string error_of(std::string_view image, std::uint64_t sequence = 3) {
  const auto header = decode_header(image, sequence);
  return header ? "" : header.error().message;
}

// Changes a byte in place and recomputes the checksum.
std::string header_with(std::size_t at, char byte) {
  std::string header = encode_header({.directory = 1, .sequence = 3, .created = 4});
  header[at] = byte;
  store_little(header.data() + 60, crc32c(0, std::string_view(header).substr(0, 60)));
  return header;
}

}  // namespace

TEST_CASE("a segment's name has at least ten digits, and stands for one number") {
  CHECK(segment_name(1) == "journal.0000000001");
  CHECK(segment_name(12345678901) == "journal.12345678901");
  for (const std::uint64_t sequence : {1ULL, 9999999999ULL, 10000000000ULL, ~0ULL}) {
    CHECK(sequence_of(segment_name(sequence)) == sequence);
  }
  for (const char* name :
       {"", "journal.", "journal.0000000000", "journal.1", "journal.00000000001",
        "journal.0000000001.new", "journal.+000000001", "journal.-000000001", "journal. 000000001",
        "journal.000000000a", "Journal.0000000001", "journal.99999999999999999999", "lock",
        "xjournal.0000000001", "journal.0000000001 "}) {
    CAPTURE(name);
    CHECK_FALSE(sequence_of(name));
  }
}

TEST_CASE("segments have seeds of their own") {
  std::vector<std::uint32_t> seeds;
  for (std::uint64_t sequence = 1; sequence <= 10'000; ++sequence) {
    seeds.push_back(seed_of(sequence));
  }
  std::ranges::sort(seeds);
  CHECK(std::ranges::adjacent_find(seeds) == seeds.end());
}

TEST_CASE("a header is read as it was written") {
  const std::string image = encode_header({.directory = kDirectory, .sequence = 3, .created = -4});
  CHECK(image.size() == kSegmentHeaderBytes);
  const auto header = decode_header(image, 3);
  REQUIRE(header);
  CHECK(header.value().directory == kDirectory);
  CHECK(header.value().sequence == 3);
  CHECK(header.value().created == -4);
  CHECK(version_of(image) == 1);
}

TEST_CASE("an invalid header is refused with the reason") {
  const std::string image = encode_header({.directory = 1, .sequence = 3, .created = 4});
  CHECK(error_of("") == "is not a segment of a tubed journal");
  CHECK(error_of(std::string(64, '\0')) == "is not a segment of a tubed journal");
  CHECK(error_of("hello") == "is not a segment of a tubed journal");
  CHECK(error_of(image, 4) == "calls itself segment 3");
  CHECK(error_of(header_with(8, 7)) == "has format version 7; this tubed reads versions 1 to 3");
  CHECK(version_of(header_with(8, 7)) == 7);
  const std::string fields = "has a header with fields that its version does not have";
  CHECK(error_of(header_with(12, 65)) == fields);
  for (std::size_t at = 40; at < 60; ++at) CHECK(error_of(header_with(at, 1)) == fields);
}

TEST_CASE("a header torn while its version was raised has the higher version") {
  for (const auto& [from, to] : {std::pair(1U, 2U), std::pair(1U, 3U), std::pair(2U, 3U)}) {
    const std::string before = header_of_version(from);
    const std::string after = header_of_version(to);
    std::vector<std::size_t> differ;
    for (std::size_t at = 0; at < before.size(); ++at) {
      if (before[at] != after[at]) differ.push_back(at);
    }
    CHECK(differ.size() == 5);
    for (unsigned written = 1; written + 1 < 1U << differ.size(); ++written) {
      std::string torn = before;
      for (std::size_t i = 0; i < differ.size(); ++i) {
        if ((written >> i & 1U) != 0) torn[differ[i]] = after[differ[i]];
      }
      REQUIRE(version_of(torn) == to);
      const auto header = decode_header(torn, 3);
      REQUIRE(header);
      CHECK(header.value().version == 1);  // makes the next write raise it again
      CHECK(header.value().torn_version == to);
    }
    CHECK(decode_header(after, 3).value().version == to);
    CHECK(decode_header(after, 3).value().torn_version == 0);
  }
}

TEST_CASE("a version torn twice is the highest of the three") {
  std::string torn = header_of_version(1);
  torn[8] = header_of_version(2)[8];
  torn[60] = header_of_version(3)[60];
  CHECK(version_of(torn) == 3);
}

TEST_CASE("a cut or changed header is refused") {
  std::string image = header_of_version(1);
  for (std::size_t cut = 8; cut < image.size(); ++cut) {
    CHECK(error_of(image.substr(0, cut)) == "has a damaged header");
  }
  for (std::size_t at = 0; at < image.size(); ++at) {
    for (int mask = 1; mask < 256; ++mask) {
      image[at] = static_cast<char>(image[at] ^ mask);
      if (image[at] == header_of_version(2)[at]) {
        REQUIRE(version_of(image) == 2);
      } else if (image[at] == header_of_version(3)[at]) {
        REQUIRE(version_of(image) == 3);
      } else {
        REQUIRE(error_of(image) ==
                (at < 8 ? "is not a segment of a tubed journal" : "has a damaged header"));
      }
      image[at] = static_cast<char>(image[at] ^ mask);
    }
  }
}

TEST_CASE("a reader walks from record to record up to unused space") {
  Image image = sample_image();
  const auto facts = sample::every_fact();
  for (const std::size_t zeros : {0U, 1U, 8U, 1'000U}) {
    const Walk found = walk(image.bytes() + std::string(zeros, '\0'));
    REQUIRE(found.records.size() == facts.size() + 2);
    CHECK(std::get<BatchHeader>(found.records[0]).lsn == 100);
    CHECK(std::get<BatchHeader>(found.records[5]).lsn == 104);
    CHECK(found.end.kind == Parsed::Kind::end);
  }
}

TEST_CASE("a reader of an empty image finds no record") {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U}) {
    const std::string image(bytes, '\0');
    SegmentReader reader(image, 3, kClock);
    CHECK(reader.next().kind == Parsed::Kind::end);
    CHECK_FALSE(reader.find_batch());
    reader.seek(UINT64_MAX);
    CHECK(reader.next().kind == Parsed::Kind::end);
    CHECK_FALSE(reader.find_batch());
  }
}

TEST_CASE("a segment cut anywhere is read up to the cut") {
  const Image image = sample_image();
  const std::string_view bytes = image.bytes();
  const Walk whole = walk(bytes);
  for (std::size_t cut = kSegmentHeaderBytes; cut < bytes.size(); ++cut) {
    const auto complete = static_cast<std::size_t>(std::ranges::upper_bound(image.starts(), cut) -
                                                   image.starts().begin() - 1);
    const Walk part = walk(bytes.substr(0, cut));
    REQUIRE(part.records.size() == complete);
    REQUIRE(is_beginning(part.records, whole.records));
    const bool between = std::ranges::binary_search(image.starts(), cut);
    REQUIRE(part.end.kind == (between ? Parsed::Kind::end : Parsed::Kind::bad));
  }
}

TEST_CASE("with a byte changed anywhere, earlier records are read, and the changed record is bad") {
  const Image image = sample_image();
  std::string bytes = image.bytes();
  const Walk whole = walk(bytes);
  for (std::size_t at = kSegmentHeaderBytes; at < bytes.size(); ++at) {
    const auto before = static_cast<std::size_t>(std::ranges::upper_bound(image.starts(), at) -
                                                 image.starts().begin() - 1);
    for (const int mask : {0x01, 0x10, 0x80, 0xff}) {
      const char kept = bytes[at];
      bytes[at] = static_cast<char>(kept ^ mask);
      const Walk part = walk(bytes);
      REQUIRE(part.records.size() == before);
      REQUIRE(is_beginning(part.records, whole.records));
      REQUIRE(part.end.kind == Parsed::Kind::bad);
      bytes[at] = kept;
    }
  }
}

TEST_CASE("remains of an older file are not accepted") {
  const Image older = sample_image(2);
  Image image(3, 100);
  image.batch().fact(Removed{.id = 1});
  const Walk found = walk(image.bytes() + older.bytes().substr(kSegmentHeaderBytes));
  CHECK(found.records.size() == 2);
  CHECK(found.end.kind == Parsed::Kind::bad);
  CHECK(found.end.reason == "the record does not match its checksum");
}

TEST_CASE("a batch that names a place other than its own is bad") {
  const Image image = sample_image();
  const std::string first(image.bytes().substr(kSegmentHeaderBytes, kBatchHeaderBytes));
  const std::string twice = image.bytes() + first;
  const Walk found = walk(twice);
  CHECK(found.records.size() == image.starts().size());
  CHECK(found.end.kind == Parsed::Kind::bad);
  CHECK(found.end.reason == "the group names another place than its own");
  SegmentReader reader(twice, 3, kClock);
  reader.seek(image.bytes().size());
  CHECK_FALSE(reader.find_batch());
}

TEST_CASE("whole batches are found after any bytes") {
  const Image image = sample_image();
  const std::size_t second = image.starts()[5];
  std::string bytes = image.bytes();
  std::fill(bytes.begin() + kSegmentHeaderBytes, bytes.begin() + static_cast<long>(second), '\xff');
  SegmentReader reader(bytes, 3, kClock);
  for (std::uint64_t from = 0; from <= second; ++from) {
    reader.seek(from);
    const auto batch = reader.find_batch();
    REQUIRE(batch);
    REQUIRE(batch->offset == second);
    REQUIRE(reader.offset() == second + kBatchHeaderBytes);
  }
  // The segment ends after it, and the reader does not move.
  CHECK_FALSE(reader.find_batch());
  CHECK(reader.offset() == second + kBatchHeaderBytes);
  CHECK(sample::same(reader.next().record, Record(sample::every_fact()[4])));
}

TEST_CASE("a segment is read in the format of its version") {
  REQUIRE(find_format(1) != nullptr);
  CHECK(find_format(kLastVersion + 1) == nullptr);
  CHECK(&last_format() == find_format(kLastVersion));
  const Image image = sample_image();
  REQUIRE(version_of(image.bytes()) == 1);
  const Walk by_header = walk(image.bytes());
  SegmentReader reader(image.bytes(), 3, kClock, *find_format(1));
  for (const Record& record : by_header.records) {
    REQUIRE(sample::same(reader.next().record, record));
  }
}

// Like version 1, but each record is preceded by the eight bytes "version2".
TEST_CASE("another version reads its own records, and not the records of version 1") {
  static constexpr std::string_view kMark = "version2";
  const Format version_2 = {
      .version = 2,
      .batch_header_bytes = kMark.size() + kBatchHeaderBytes,
      .parse =
          [](std::string_view bytes, std::uint32_t seed, const WallClock& clock) {
            if (!bytes.starts_with(kMark)) return Parsed{};
            Parsed parsed = parse_record<kLastVersion>(bytes.substr(kMark.size()), seed, clock);
            parsed.bytes += kMark.size();
            return parsed;
          },
      .may_be_batch_header = [](std::string_view bytes) { return bytes.starts_with(kMark); }};
  const Image image = sample_image();
  const std::string fact(
      image.bytes().substr(image.starts()[1], image.starts()[2] - image.starts()[1]));
  std::string batch(kBatchHeaderBytes, '\0');
  write_batch_header(batch, seed_of(3),
                     {.directory = kDirectory, .offset = kSegmentHeaderBytes, .facts = 1});
  const std::string bytes = std::string(image.bytes().substr(0, kSegmentHeaderBytes)) +
                            std::string(kMark) + batch + std::string(kMark) + fact;
  SegmentReader reader(bytes, 3, kClock, version_2);
  REQUIRE(reader.find_batch());
  CHECK(reader.offset() == kSegmentHeaderBytes + version_2.batch_header_bytes);
  CHECK(sample::same(reader.next().record, Record(sample::every_fact()[0])));
  CHECK(reader.next().kind == Parsed::Kind::end);
  CHECK(walk(bytes).records.empty());
}

TEST_CASE("batches are found one after the other") {
  const Image image = sample_image();
  SegmentReader reader(image.bytes(), 3, kClock);
  CHECK(reader.find_batch()->lsn == 100);
  CHECK(reader.find_batch()->lsn == 104);
  CHECK_FALSE(reader.find_batch());
}

TEST_CASE("a directory's segments are listed oldest first, without other files") {
  TestDisk disk(TestDisk::Contents{{"journal.0000000010", "abc"},
                                   {"journal.0000000002", ""},
                                   {"journal.0000000011.new", "x"},
                                   {"lock", ""}});
  const auto segments = list_segments(disk);
  REQUIRE(segments);
  REQUIRE(segments.value().size() == 2);
  CHECK(segments.value()[0].sequence == 2);
  CHECK(segments.value()[1].sequence == 10);
  CHECK(segments.value()[1].bytes == 3);
  CHECK(read_segment(disk, 10).value() == "abc");
  CHECK_FALSE(read_segment(disk, 3));
}

TEST_CASE("a segment of version 2 has no records of version 3") {
  Image image(3, 100);
  image.batch().fact(Held{.id = 1, .until = Time()});
  REQUIRE(version_of(image.bytes()) == 3);
  CHECK(walk(image.bytes()).records.size() == 2);
  SegmentReader reader(image.bytes(), 3, kClock, *find_format(2));
  CHECK(reader.next().kind == Parsed::Kind::record);
  CHECK(reader.next().reason == "the record is of an unknown kind");
}

TEST_CASE("a segment of version 1 has no records of version 2") {
  Image image(3, 100);
  image.batch().fact(Flushed{.tube = "a"});
  REQUIRE(version_of(image.bytes()) == 2);
  CHECK(walk(image.bytes()).records.size() == 2);
  SegmentReader reader(image.bytes(), 3, kClock, *find_format(1));
  CHECK(reader.next().kind == Parsed::Kind::record);
  const Parsed refused = reader.next();
  CHECK(refused.kind == Parsed::Kind::bad);
  CHECK(refused.reason == "the record is of an unknown kind");
}

}  // namespace tubed::journal
