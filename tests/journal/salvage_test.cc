// Salvage of a damaged journal: the data that it copies, and the losses that it reports.
#include "journal/salvage.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "journal/segment.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Collected;
using sample::Image;
using sample::kClock;

using Ids = std::vector<JobId>;

// Salvages a journal of removals and reads the result.
struct Salvaged {
  explicit Salvaged(TestDisk& damaged) {
    const auto before = damaged.files();
    LogCopy into(copy, {.directory = 99, .segment_bytes = 10'000, .clock = kClock, .now = 1});
    auto result =
        salvage(damaged, into, kClock, [&](std::string_view line) { lines.emplace_back(line); });
    CHECK(damaged.files() == before);
    if (!result) {
      error = result.error().message;
      return;
    }
    report = *result;
    const auto found = examine(copy, kClock, kept, nullptr);
    REQUIRE(found);
    CHECK(found.value().clean);
    CHECK(found.value().directory == 99);
    CHECK(found.value().facts == report.facts);
    next_job_id = found.value().next_job_id;
    for (const Fact& fact : kept.facts()) {
      if (const auto* removed = std::get_if<Removed>(&fact)) ids.push_back(removed->id);
    }
  }

  TestDisk copy;
  Collected kept;
  std::vector<std::string> lines;
  std::string error;
  SalvageReport report;
  JobId next_job_id = 0;
  Ids ids;
};

// Batches of two facts each: removals whose ids are the facts' positions, starting at 1.
Image removals(std::uint64_t sequence, JobId first, JobId last, std::uint64_t directory = 7) {
  Image image(sequence, first - 1, directory);
  for (JobId id = first; id <= last; ++id) {
    if ((id - first) % 2 == 0) image.batch();
    image.fact(Removed{.id = id});
  }
  return image;
}

std::string name(std::uint64_t sequence) {
  return segment_name(sequence);
}

// Three segments: facts 1 to 6, 7 to 12, 13 to 18.
TestDisk whole_journal() {
  return TestDisk(TestDisk::Contents{{name(1), removals(1, 1, 6).bytes()},
                                     {name(2), removals(2, 7, 12).bytes()},
                                     {name(3), removals(3, 13, 18).zeros(1'000).bytes()},
                                     {"lock", ""}});
}

Ids without(std::initializer_list<JobId> lost) {
  Ids ids;
  for (JobId id = 1; id <= 18; ++id) {
    if (std::ranges::find(lost, id) == lost.end()) ids.push_back(id);
  }
  return ids;
}

}  // namespace

TEST_CASE("nothing is lost of a whole journal") {
  TestDisk disk = whole_journal();
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({}));
  CHECK(salvaged.report.complete());
  CHECK(salvaged.report.segments == 3);
  CHECK(salvaged.lines ==
        std::vector<std::string>{"copied 18 facts of 3 segments", "nothing is lost"});
}

TEST_CASE("every kind of fact is copied unchanged") {
  Image image(1, 0);
  image.batch();
  for (const Fact& fact : sample::every_fact_of_version_3()) image.fact(fact);
  TestDisk disk(TestDisk::Contents{{name(1), image.bytes()}});
  const Salvaged salvaged(disk);
  const std::vector<Fact> kept = salvaged.kept.facts();
  const std::vector<Fact> facts = sample::every_fact_of_version_3();
  REQUIRE(kept.size() == facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    CHECK(sample::same(kept[i], facts[i]));
  }
}

TEST_CASE("a salvage continues at the next batch after damage, and reports the loss") {
  const Image second = removals(2, 7, 12);
  TestDisk disk = whole_journal();
  const std::size_t fact = second.starts()[4];  // fact 9, in the batch of 9 and 10
  disk.flip(name(2), fact + 20);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({9, 10}));
  CHECK(salvaged.report.lost_facts == 2);
  REQUIRE(salvaged.report.lost.size() == 1);
  CHECK(salvaged.report.lost[0].file == name(2));
  CHECK(salvaged.report.lost[0].range.from == fact);
  CHECK(salvaged.report.lost[0].range.to == second.starts()[6]);
  CHECK(salvaged.report.missing.empty());
  CHECK(salvaged.lines ==
        std::vector<std::string>{
            "journal.0000000002:256 is lost up to 304: the record does not match its checksum",
            "before journal.0000000002:304 2 facts are missing", "copied 16 facts of 3 segments",
            "at least 2 facts are lost"});
}

TEST_CASE("with a byte changed anywhere, at most its batch is lost") {
  const Image image = removals(1, 1, 8);
  for (std::size_t at = 0; at < image.bytes().size(); ++at) {
    TestDisk disk(TestDisk::Contents{{name(1), image.bytes()}});
    disk.flip(name(1), at);
    const Salvaged salvaged(disk);
    REQUIRE(salvaged.ids.size() >= (at < kSegmentHeaderBytes ? 8U : 6U));
    REQUIRE(std::ranges::is_sorted(salvaged.ids));
    REQUIRE_FALSE(salvaged.report.complete());
  }
}

TEST_CASE("a segment whose header is damaged is still read") {
  TestDisk disk = whole_journal();
  for (const std::uint64_t sequence : {1U, 2U, 3U}) disk.flip(name(sequence), 20);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({}));
  CHECK(salvaged.report.lost_facts == 0);
  CHECK(salvaged.report.lost.size() == 3);
  CHECK(salvaged.lines.front() == "journal.0000000001 has a damaged header");
  CHECK(salvaged.lines.back() == "how many facts are lost is not known");
}

TEST_CASE("missing segments are named, whether few or very many") {
  TestDisk disk = whole_journal();
  disk.lose(name(2));
  disk.place(name(1'000'000'000'000), removals(1'000'000'000'000, 19, 20).bytes());
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids.size() == 14);
  CHECK(salvaged.report.lost_facts == 6);
  REQUIRE(salvaged.report.missing.size() == 2);
  CHECK(salvaged.report.missing[0].first == 2);
  CHECK(salvaged.report.missing[0].last == 2);
  CHECK(salvaged.report.missing[1].first == 4);
  CHECK(salvaged.report.missing[1].last == 999'999'999'999);
  CHECK(salvaged.lines[0] == "journal.0000000002 is missing");
}

TEST_CASE("segments that compaction has removed are not missing") {
  TestDisk disk = whole_journal();
  disk.lose(name(1));
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({1, 2, 3, 4, 5, 6}));
  CHECK(salvaged.report.complete());
}

TEST_CASE("a torn tail is lost up to its last byte, and unused space is no loss") {
  TestDisk disk = whole_journal();
  const Image third = removals(3, 13, 18);
  std::string image = third.bytes();
  const std::size_t last = third.starts().back();
  image.resize(last + 10);  // its header and a few more bytes
  image.resize(5'000);
  disk.place(name(3), image);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({18}));
  REQUIRE(salvaged.report.lost.size() == 1);
  CHECK(salvaged.report.lost[0].range.from == last);
  CHECK(salvaged.report.lost[0].range.to == last + 16);
  CHECK(salvaged.lines.back() == "how many facts are lost is not known");
}

TEST_CASE("a hole of zeros is a loss if something follows it") {
  const Image second = removals(2, 7, 12);
  std::string image = second.bytes();
  std::fill_n(image.begin() + static_cast<long>(second.starts()[0]), second.starts()[3] - 64, '\0');
  TestDisk disk = whole_journal();
  disk.place(name(2), image);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({7, 8}));
  CHECK(salvaged.report.lost_facts == 2);
  REQUIRE(salvaged.report.lost.size() == 1);
  CHECK(salvaged.report.lost[0].range.reason == "nothing is written here, but something behind");
}

TEST_CASE("the bytes of a batch in a body are not mistaken for a batch") {
  Image image(1, 0, 7);
  image.batch();
  // A body that contains a batch and a removal for exactly the offset at which they are written. A
  // client cannot know the journal's identity.
  const std::size_t record_at = image.bytes().size();
  const std::size_t body_at = record_at + kRecordHeaderBytes + 64 + 8;
  std::string forged(kBatchHeaderBytes, '\0');
  write_batch_header(forged, seed_of(1), {.directory = 8, .offset = body_at, .lsn = 1});
  append_record(forged, seed_of(1), Removed{.id = 666}, kClock);
  image.fact(sample::added(1, "8 bytes.", forged));
  REQUIRE(SegmentReader(image.bytes(), 1, kClock).find_batch()->offset == 64);
  SegmentReader reader(image.bytes(), 1, kClock);
  reader.seek(record_at);
  REQUIRE(reader.find_batch()->offset == body_at);  // the search would find it

  image.batch().fact(Removed{.id = 2});
  TestDisk disk(TestDisk::Contents{{name(1), image.bytes()}});
  disk.flip(name(1), record_at + 9);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == Ids{2});
  CHECK(salvaged.report.lost_facts == 1);
}

TEST_CASE("a segment of another journal is left out") {
  TestDisk disk = whole_journal();
  disk.place(name(1), removals(1, 1, 6, 8).bytes());
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({1, 2, 3, 4, 5, 6}));
  REQUIRE(salvaged.report.lost.size() == 1);
  CHECK(salvaged.report.lost[0].range.reason == "it belongs to another journal");
}

TEST_CASE("a segment of another version ends the salvage, because it is not damage") {
  TestDisk disk = whole_journal();
  std::string image = disk.contents(name(2));
  image[8] = 9;
  store_little(image.data() + 60, crc32c(0, std::string_view(image).substr(0, 60)));
  disk.place(name(2), image);
  const Salvaged salvaged(disk);
  CHECK(salvaged.error ==
        "journal.0000000002 has format version 9; this tubed reads versions 1 to 3");
  CHECK(salvaged.copy.names().empty());
}

TEST_CASE("a file that cannot be read is reported as lost") {
  TestDisk disk = whole_journal();
  // Each file is read twice. This fails the second file in the first three reads and the next
  // three.
  disk.fail_after(Operation::read, 4);
  const Salvaged salvaged(disk);
  CHECK(salvaged.ids == without({7, 8, 9, 10, 11, 12}));
  REQUIRE(salvaged.report.lost.size() == 1);
  CHECK(salvaged.report.lost[0].file == name(2));
  CHECK(salvaged.report.lost[0].range.reason.starts_with("it cannot be read: "));
}

TEST_CASE("a salvage that cannot be written, or finds nothing, is an error") {
  TestDisk empty(TestDisk::Contents{{"lock", ""}});
  CHECK(Salvaged(empty).error == "there is no segment of a journal");
  TestDisk disk = whole_journal();
  TestDisk full;
  full.set_capacity(10);
  LogCopy into(full, {.directory = 1, .segment_bytes = 1'000, .clock = kClock, .now = 1});
  CHECK_FALSE(salvage(disk, into, kClock, [](std::string_view) {}));
}

TEST_CASE("ids that were used stay used") {
  Image image(1, 0);
  image.fact(sample::added(41, "a", "")).batch();
  TestDisk disk(TestDisk::Contents{{name(1), image.bytes()}});
  disk.flip(name(1), 100);
  CHECK(Salvaged(disk).next_job_id == 42);
}

}  // namespace tubed::journal
