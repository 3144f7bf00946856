// The bytes of each version of the format, which every later version must be able to read.
//
// The case "write the goldens that are not there" created the files; it runs only with --no-skip
// and replaces no file.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "journal/dump.h"
#include "journal/segment.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Image;
using sample::kClock;

constexpr const char* kFolder = TUBED_GOLDENS "/v1/";

// Every kind and state; two batches, and in the second segment a clean end and unused space.
TestDisk::Contents version_1() {
  const std::vector<Fact> facts = sample::every_fact();
  Image first(1, 0);
  first.batch();
  for (std::size_t i = 0; i < 4; ++i) first.fact(facts[i]);
  first.batch();
  for (std::size_t i = 4; i < 9; ++i) first.fact(facts[i]);
  Image second(2, first.next_lsn());
  second.use_ids_below(first.next_job_id()).with_jobs(first.jobs());
  second.batch();
  second.fact(facts[9]);
  second.batch(true);
  second.zeros(64);
  return {{segment_name(1), first.bytes()}, {segment_name(2), second.bytes()}};
}

std::string dump_text(TestDisk& disk) {
  std::string text;
  const auto print = [&](std::string_view line) { text.append(line).push_back('\n'); };
  CHECK(dump(disk, print, Bodies::text));
  return text;
}

std::string read_golden(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  REQUIRE_MESSAGE(file, kFolder << name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TestDisk golden_disk() {
  TestDisk::Contents files;
  for (const std::uint64_t sequence : {1U, 2U}) {
    files[segment_name(sequence)] = read_golden(segment_name(sequence));
  }
  return TestDisk(files);
}

}  // namespace

TEST_CASE("the format that is written is version 1, to the byte") {
  for (const auto& file : version_1()) {
    CAPTURE(file.first);
    CHECK((read_golden(file.first) == file.second));
  }
}

TEST_CASE("the goldens name version 1, whose format reads them") {
  const std::string image = read_golden(segment_name(1));
  const auto header = decode_header(image, 1);
  REQUIRE(header);
  REQUIRE(version_of(image) == 1);
  SegmentReader reader(image, 1, kClock, *find_format(*version_of(image)));
  const std::vector<Fact> facts = sample::every_fact();
  std::size_t read = 0;
  for (Parsed parsed = reader.next(); parsed.kind == Parsed::Kind::record; parsed = reader.next()) {
    const auto* fact = std::get_if<Fact>(&parsed.record);
    if (fact != nullptr) CHECK(sample::same(*fact, facts[read++]));
  }
  CHECK(read == 9);
}

TEST_CASE("version 1 reads as the facts that were written") {
  TestDisk disk = golden_disk();
  sample::Collected collected;
  const auto found = examine(disk, kClock, collected, nullptr);
  REQUIRE(found);
  CHECK(found.value().directory == sample::kDirectory);
  CHECK(found.value().next_lsn == 10);
  CHECK(found.value().clean);
  const std::vector<Fact> records = collected.facts();
  const std::vector<Fact> facts = sample::every_fact();
  REQUIRE(records.size() == facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    CHECK(sample::same(records[i], facts[i]));
  }
}

TEST_CASE("version 1 is dumped as this text") {
  TestDisk disk = golden_disk();
  CHECK(dump_text(disk) == read_golden("dump.txt"));
}

TEST_CASE("write the goldens that are not there" * doctest::skip()) {
  TestDisk::Contents files = version_1();
  TestDisk disk(files);
  files["dump.txt"] = dump_text(disk);
  for (const auto& [name, contents] : files) {
    if (std::filesystem::exists(kFolder + name)) continue;
    std::ofstream(kFolder + name, std::ios::binary) << contents;
  }
}

}  // namespace tubed::journal
