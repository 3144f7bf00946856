// A start with altered files: damage is refused, or nothing is lost. Only the last batch, which
// nothing proves to be stored, is treated as a torn tail.
#include <functional>

#include "cluster/raft_file.h"
#include "tests/cluster/raft_log_rig.h"

namespace tubed::cluster {

namespace {

using journal::TestDisk;

struct Sample {
  TestDisk::Contents files;
  std::string terms;         // of all entries
  std::string terms_before;  // before the last batch
};

// Batches in several files, with a replacement, a reset and entries that were cut. `sealed`: the
// last batch has no entries.
Sample some_log(bool sealed) {
  RaftLogRig rig(512);
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 5));
  REQUIRE(rig.log->reset(20).ok());
  for (Term term = 2; term < 6; ++term) rig.store(entries_of(term, 3, 30 * term));
  rig.append(30, entries_of(6, 4));
  rig.settle();
  rig.log->cut(24);
  rig.settle();
  Sample sample;
  sample.terms_before = rig.terms();
  rig.store(entries_of(7, 2, 20));
  sample.terms = rig.terms();
  if (sealed) rig.log->seal();
  rig.settle();
  sample.files = rig.disk.durable_files();
  CHECK(!sample.files.contains("raft.0000000001"));
  CHECK(sample.files.size() >= 5);
  return sample;
}

// Returns the terms of the entries from 24, or the error if the log is refused.
std::string terms_or_error(const TestDisk& disk, Error::Kind* kind = nullptr) {
  RaftLogRig rig(512);
  rig.disk = TestDisk(disk.files());
  if (const auto error = rig.open()) {
    if (kind != nullptr) *kind = error->kind;
    return error->message;
  }
  rig.log->cut(24);
  // More can be written to the remaining log.
  const std::string terms = rig.terms();
  rig.store(entries_of(9, 1));
  const auto error = rig.restart();
  REQUIRE_MESSAGE(!error, error->message);
  rig.log->cut(24);
  CHECK(rig.terms().starts_with(terms));
  return terms;
}

// Damages each file in all places, and checks that nothing is lost unless it may be.
void damage_everywhere(
    const Sample& sample, bool last_may_be_lost,
    const std::function<void(TestDisk&, const std::string&, std::uint64_t)>& alter) {
  std::uint64_t refused = 0;
  std::uint64_t lost = 0;
  for (const auto& [name, contents] : sample.files) {
    for (std::uint64_t at = 0; at < contents.size(); ++at) {
      TestDisk disk(sample.files);
      alter(disk, name, at);
      Error::Kind kind = Error::Kind::other;
      const std::string found = terms_or_error(disk, &kind);
      const std::string place = name + " at " + std::to_string(at) + ": " + found;
      INFO(place);
      if (found == sample.terms) continue;
      if (last_may_be_lost && found == sample.terms_before) {
        ++lost;
        continue;
      }
      CHECK(found.starts_with("raft.00000000"));
      CHECK(kind == Error::Kind::damaged);
      ++refused;
    }
  }
  CHECK(refused > 500);
  if (last_may_be_lost) CHECK(lost > 0);
}

}  // namespace

TEST_CASE("the sample is a valid log") {
  for (const bool sealed : {false, true}) {
    const Sample sample = some_log(sealed);
    CHECK(terms_or_error(TestDisk(sample.files)) == sample.terms);
  }
}

TEST_CASE("an altered byte is refused, or changes nothing") {
  const auto flip = [](TestDisk& disk, const std::string& name, std::uint64_t at) {
    disk.flip(name, at, static_cast<std::uint8_t>(1U << at % 8));
  };
  damage_everywhere(some_log(true), false, flip);
  damage_everywhere(some_log(false), true, flip);
}

TEST_CASE("zeroed bytes are refused, or change nothing") {
  // Not in two batches at once: a damaged seal would not prove the damage of the batch before it.
  const auto clear = [](TestDisk& disk, const std::string& name, std::uint64_t at) {
    std::string contents = disk.contents(name);
    const std::uint64_t bytes = std::min<std::uint64_t>(contents.size() - at, 8 - at % 8);
    contents.replace(at, bytes, bytes, '\0');
    disk.place(name, contents);
  };
  damage_everywhere(some_log(true), false, clear);
  damage_everywhere(some_log(false), true, clear);
}

TEST_CASE("a file without its end is refused, or lost nothing") {
  const auto cut = [](TestDisk& disk, const std::string& name, std::uint64_t at) {
    // A file without a batch may be the oldest: the caller knows where the log must begin.
    if (at != kRaftFileHeaderBytes) disk.cut(name, at);
  };
  damage_everywhere(some_log(true), true, cut);
}

TEST_CASE("a missing file is refused, unless it is the oldest or has no entry") {
  const Sample sample = some_log(true);
  std::size_t lost = 0;
  for (const auto& [name, contents] : sample.files) {
    TestDisk disk(sample.files);
    disk.lose(name);
    const std::string found = terms_or_error(disk);
    const std::string place = name + ": " + found;
    INFO(place);
    const bool oldest = name == sample.files.begin()->first;
    const bool newest = name == sample.files.rbegin()->first;
    if (oldest || newest) continue;  // the caller knows where the log must begin
    CHECK(found == raft_file_name(*raft_file_number(name)) + " is missing");
    ++lost;
  }
  CHECK(lost > 2);
}

TEST_CASE("a file in the place of another is refused") {
  const Sample sample = some_log(true);
  for (const auto& [name, contents] : sample.files) {
    for (const auto& [other, other_contents] : sample.files) {
      if (name == other) continue;
      TestDisk disk(sample.files);
      disk.lose(name);
      disk.place(name, other_contents);
      CHECK(terms_or_error(disk).find("calls itself file") != std::string::npos);
    }
  }
}

TEST_CASE("a torn tail is cut, and the log continues there") {
  RaftLogRig rig(1024);
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 2));
  rig.store(entries_of(2, 2, 100));
  rig.log.reset();
  rig.disk.flip("raft.0000000001", 64 + 64 + 2 * 40 + 70);
  REQUIRE(!rig.open());
  REQUIRE(rig.log->cut_at_open());
  CHECK(rig.log->cut_at_open()->file == 1);
  CHECK(rig.log->cut_at_open()->offset == 64 + 64 + 2 * 40);
  CHECK(rig.log->cut_at_open()->reason == "the entries of a batch do not match their checksum");
  CHECK(rig.terms() == "1:1 2:1");
  CHECK(rig.disk.contents("raft.0000000001").size() == 64 + 64 + 2 * 40);
  rig.store(entries_of(3, 1));
  REQUIRE(!rig.restart());
  CHECK(!rig.log->cut_at_open());
  CHECK(rig.terms() == "1:1 2:1 3:3");
}

TEST_CASE("damage is reported with its place, and no file is changed") {
  RaftLogRig rig(1024);
  REQUIRE(!rig.open());
  for (Term term = 1; term < 4; ++term) rig.store(entries_of(term, 1));
  rig.log.reset();
  rig.disk.flip("raft.0000000001", 64 + 64 + 30);
  const auto files = rig.disk.files();
  const auto error = rig.open();
  REQUIRE(error);
  CHECK(error->kind == Error::Kind::damaged);
  CHECK(error->message ==
        "raft.0000000001 is damaged at offset 64: the entries of a batch do not match their "
        "checksum; batch 2 at 168 was written later");
  CHECK(rig.disk.files() == files);
}

TEST_CASE("arbitrary bytes are read without harm") {
  const Sample sample = some_log(true);
  journal::Random random(1);
  for (int round = 0; round < 3000; ++round) {
    TestDisk disk(sample.files);
    for (std::uint64_t i = random() % 8 + 1; i > 0; --i) {
      auto file = sample.files.begin();
      std::advance(file, random() % sample.files.size());
      const std::uint64_t size = disk.contents(file->first).size();
      if (size == 0) continue;
      if (random() % 8 == 0) {
        disk.cut(file->first, random() % size);
      } else {
        disk.flip(file->first, random() % size, static_cast<std::uint8_t>(random() % 255 + 1));
      }
    }
    RaftLogRig rig(512);
    rig.disk = TestDisk(disk.files());
    const auto error = rig.open();
    if (!error) rig.store(entries_of(9, 1));
  }
}

}  // namespace tubed::cluster
