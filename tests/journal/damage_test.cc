// A journal that was damaged on the disk: it is read up to some fact, or refused by file name;
// never is anything recovered that was not, and nothing is lost silently that the log itself knows
// to have been on disk.
#include <algorithm>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "tests/journal/journal_life.h"

namespace tubed::journal {

namespace {

struct FoundRecord {
  std::uint64_t segment;
  std::uint64_t end;  // its last byte is before it
  LogNumber number;   // of facts up to and with this record
};

// A journal of several segments with all that was told to it.
class Recorded final : public RecordSink {
 public:
  enum class End : std::uint8_t { in_order, as_it_is };

  Recorded(std::uint64_t seed, End end) : life_(nature(seed)) {
    REQUIRE(life_.boot());
    while (!has_enough()) life_.turn();
    if (end == End::in_order) life_.stop();
    life_.disk().run_all();
    REQUIRE_FALSE(life_.problem());
    files_ = life_.disk().durable_files();
    TestDisk disk(files_);
    auto found = examine(disk, life_.clock(), *this, nullptr);
    REQUIRE(found.ok());
    found_ = std::move(*found);
    REQUIRE_FALSE(found_.cut);
  }

  const TestDisk::Contents& files() const { return files_; }
  const Examined& found() const { return found_; }
  const Group& last_group() const { return last_group_; }
  std::string current_name() const {
    return segment_name(found_.segments[found_.current].sequence);
  }

  // How many facts stand in whole records before this place.
  LogNumber facts_before(std::uint64_t segment, std::uint64_t offset) const {
    LogNumber number = first_number_;
    for (const FoundRecord& record : records_) {
      const bool before =
          record.segment < segment || (record.segment == segment && record.end <= offset);
      if (before) number = record.number;
    }
    return number;
  }

  // Recovery of this disk refuses (nothing), or gives the state after the number of facts returned.
  std::optional<LogNumber> recover(TestDisk& disk, const std::string& damage) {
    const auto revival = revive(disk, life_.clock(), life_.now());
    if (!revival) {
      const bool names_file = revival.error().message.find("journal.0") != std::string::npos;
      CHECK_MESSAGE(names_file, damage << ": " << revival.error().message);
      return std::nullopt;
    }
    const LogNumber number = revival.value().found.next_number;
    if (number > life_.journal().newest()) FAIL(damage << ": facts that were never told");
    const engine::Lines& expected = state_after(number);
    if (durable_state(*revival.value().engine, life_.now()) != expected) {
      FAIL(damage << ": not the state after " << number << " facts");
    }
    return number;
  }

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override {
    if (const auto* group = std::get_if<Group>(&record)) {
      if (records_.empty()) first_number_ = number_ = group->number;
      last_group_ = *group;
    } else {
      ++number_;
    }
    records_.push_back({segment, offset + bytes, number_});
  }

 private:
  static JournalLife::Nature nature(std::uint64_t seed) {
    JournalLife::Nature nature;
    nature.seed = seed;
    nature.habits = {.jobs = 8, .body_bytes = 400};
    return nature;
  }

  bool has_enough() const {
    const JournalCounts counts = life_.journal().counts();
    return counts.oldest_segment > 1 && counts.current_segment > counts.oldest_segment + 1;
  }

  const engine::Lines& state_after(LogNumber number) {
    engine::Lines& state = states_[number];
    if (state.empty()) {
      const auto engine = life_.history().state_at(number, life_.clock(), life_.now());
      state = durable_state(*engine, life_.now());
    }
    return state;
  }

  JournalLife life_;
  TestDisk::Contents files_;
  Examined found_;
  std::vector<FoundRecord> records_;
  LogNumber first_number_ = 0;
  LogNumber number_ = 0;
  Group last_group_;
  std::map<LogNumber, engine::Lines> states_;
};

using End = Recorded::End;

// How often recovery refused, and how often it went on.
struct Tally {
  std::uint64_t refused = 0;
  std::uint64_t recovered = 0;

  void add(const std::optional<LogNumber>& number) { ++(number ? recovered : refused); }
};

// Damages the disk in every way that `each_damage` knows for each file, and looks at what recovery
// makes of it: nothing that was on disk when the last group was written may be missing.
Tally damage_every_file(
    Recorded& recorded,
    const std::function<void(TestDisk&, const std::string&, std::uint64_t)>& act,
    std::uint64_t stride) {
  Tally tally;
  for (const auto& [name, contents] : recorded.files()) {
    for (std::uint64_t at = 0; at < contents.size(); at += stride) {
      TestDisk disk(recorded.files());
      act(disk, name, at);
      const std::string damage = name + " at " + std::to_string(at);
      const auto number = recorded.recover(disk, damage);
      tally.add(number);
      if (number) CHECK_MESSAGE(*number >= recorded.last_group().durable, damage);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("a byte that has changed is noticed, wherever it is") {
  for (const End end : {End::in_order, End::as_it_is}) {
    Recorded recorded(end == End::in_order ? 1 : 2, end);
    const Tally tally = damage_every_file(
        recorded,
        [](TestDisk& disk, const std::string& name, std::uint64_t at) {
          constexpr std::array<std::uint8_t, 4> kMasks = {0xff, 0x01, 0x80, 0x10};
          disk.flip(name, at, kMasks[at * 7 % kMasks.size()]);
        },
        1);
    CHECK(tally.refused > 3000);  // what was on disk before the last group, and headers
    CHECK(tally.recovered > 0);
  }
}

TEST_CASE("a sector of zeros is noticed") {
  Recorded recorded(3, End::as_it_is);
  const Tally tally = damage_every_file(
      recorded,
      [](TestDisk& disk, const std::string& name, std::uint64_t at) {
        std::string image = disk.contents(name);
        const std::size_t bytes = std::min<std::size_t>(512, image.size() - at);
        image.replace(at, bytes, bytes, '\0');
        disk.place(name, image);
      },
      512);
  CHECK(tally.refused > 5);
}

TEST_CASE("a file cut short ends the log there, or is refused if the log went on behind it") {
  for (const End end : {End::in_order, End::as_it_is}) {
    Recorded recorded(end == End::in_order ? 4 : 5, end);
    Tally tally;
    for (const auto& [name, contents] : recorded.files()) {
      const std::uint64_t segment = sequence_of(name).value();
      for (std::uint64_t bytes = 0; bytes < contents.size(); ++bytes) {
        TestDisk disk(recorded.files());
        disk.cut(name, bytes);
        const std::string damage = name + " cut to " + std::to_string(bytes);
        const auto number = recorded.recover(disk, damage);
        tally.add(number);
        const LogNumber left = name < recorded.current_name()
                                   ? recorded.last_group().durable
                                   : recorded.facts_before(segment, bytes);
        if (number) CHECK_MESSAGE(*number >= left, damage);
      }
    }
    CHECK(tally.refused > 3000);
    CHECK(tally.recovered > 0);
  }
}

TEST_CASE("a file that is missing between others is refused") {
  Recorded recorded(6, End::as_it_is);
  const auto& segments = recorded.found().segments;
  REQUIRE(segments.size() >= 3);
  for (std::size_t i = 1; i + 1 < segments.size(); ++i) {
    TestDisk disk(recorded.files());
    disk.lose(segment_name(segments[i].sequence));
    CHECK_FALSE(recorded.recover(disk, "a file lost"));
  }
  TestDisk disk(recorded.files());
  disk.lose(segment_name(segments.back().sequence));
  recorded.recover(disk, "the last file lost");
}

TEST_CASE("a segment in the place of another is refused") {
  Recorded recorded(7, End::as_it_is);
  Recorded other(8, End::as_it_is);
  for (const auto& [name, contents] : recorded.files()) {
    for (const TestDisk::Contents* from : {&recorded.files(), &other.files()}) {
      for (const auto& [from_name, from_contents] : *from) {
        if (from == &recorded.files() && from_name == name) continue;
        TestDisk disk(recorded.files());
        disk.place(name, from_contents);
        CHECK_FALSE(recorded.recover(disk, from_name + " in the place of " + name));
      }
    }
  }
}

}  // namespace tubed::journal
