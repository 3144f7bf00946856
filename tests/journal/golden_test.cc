// The bytes of each version of the format, which every later version must be able to read.
//
// The case "write the goldens that are not there" creates the files. It runs only with --no-skip
// and replaces no file.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "journal/dump.h"
#include "journal/segment.h"
#include "tests/journal/sample.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

namespace {

using sample::Image;
using sample::kClock;

// The contents of the goldens of a version: each of its kinds and states.
struct Version {
  std::uint32_t number;
  std::vector<Fact> facts;

  std::string folder() const { return TUBED_GOLDENS "/v" + std::to_string(number) + "/"; }
};

std::vector<Version> versions() {
  return {{1, sample::every_fact()},
          {2, sample::every_fact_of_version_2()},
          {3, sample::every_fact_of_version_3()}};
}

// Two batches. The second segment has facts of later versions, a clean end and unused space.
TestDisk::Contents written(const Version& version) {
  const std::vector<Fact>& facts = version.facts;
  Image first(1, 0);
  first.batch();
  for (std::size_t i = 0; i < 4; ++i) first.fact(facts[i]);
  first.batch();
  for (std::size_t i = 4; i < 9; ++i) first.fact(facts[i]);
  Image second(2, first.next_lsn());
  second.use_ids_below(first.next_job_id()).with_jobs(first.jobs());
  second.batch();
  for (std::size_t i = 9; i < facts.size(); ++i) second.fact(facts[i]);
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

std::string read_golden(const Version& version, const std::string& name) {
  std::ifstream file(version.folder() + name, std::ios::binary);
  REQUIRE_MESSAGE(file, version.folder() << name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TestDisk golden_disk(const Version& version) {
  TestDisk::Contents files;
  for (const std::uint64_t sequence : {1U, 2U}) {
    files[segment_name(sequence)] = read_golden(version, segment_name(sequence));
  }
  return TestDisk(files);
}

}  // namespace

TEST_CASE("each version is written exactly as its goldens") {
  for (const Version& version : versions()) {
    for (const auto& file : written(version)) {
      CAPTURE(version.number);
      CAPTURE(file.first);
      CHECK((read_golden(version, file.first) == file.second));
    }
  }
}

TEST_CASE("the goldens name their version, whose format reads them") {
  for (const Version& version : versions()) {
    const std::string image = read_golden(version, segment_name(2));
    REQUIRE(decode_header(image, 2));
    REQUIRE(version_of(image) == version.number);
    CHECK(version_of(read_golden(version, segment_name(1))) == 1);
    SegmentReader reader(image, 2, kClock, *find_format(version.number));
    std::size_t read = 9;
    for (Parsed parsed = reader.next(); parsed.kind == Parsed::Kind::record;
         parsed = reader.next()) {
      const auto* fact = std::get_if<Fact>(&parsed.record);
      if (fact != nullptr) CHECK(sample::same(*fact, version.facts[read++]));
    }
    CHECK(read == version.facts.size());
  }
}

TEST_CASE("reading the goldens gives the facts that were written") {
  for (const Version& version : versions()) {
    TestDisk disk = golden_disk(version);
    sample::Collected collected;
    const auto found = examine(disk, kClock, collected, nullptr);
    REQUIRE(found);
    CHECK(found.value().directory == sample::kDirectory);
    CHECK(found.value().next_lsn == version.facts.size());
    CHECK(found.value().clean);
    const std::vector<Fact> records = collected.facts();
    REQUIRE(records.size() == version.facts.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      CHECK(sample::same(records[i], version.facts[i]));
    }
  }
}

TEST_CASE("dumping the goldens gives their texts") {
  for (const Version& version : versions()) {
    TestDisk disk = golden_disk(version);
    CHECK(dump_text(disk) == read_golden(version, "dump.txt"));
  }
}

TEST_CASE("write the goldens that are not there" * doctest::skip()) {
  for (const Version& version : versions()) {
    TestDisk::Contents files = written(version);
    TestDisk disk(files);
    files["dump.txt"] = dump_text(disk);
    std::filesystem::create_directories(version.folder());
    for (const auto& [name, contents] : files) {
      if (std::filesystem::exists(version.folder() + name)) continue;
      std::ofstream(version.folder() + name, std::ios::binary) << contents;
    }
  }
}

}  // namespace tubed::journal
