#include "journal/binlog.h"

#include <algorithm>
#include <optional>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/journal/binlogs/folded_jobs.h"
#include "tests/journal/binlogs/golden.h"

namespace tubed::journal {
namespace {

constexpr WallClock kNoOffset{};
constexpr char kReady = 1;
constexpr char kReserved = 2;
constexpr char kBuried = 3;
constexpr char kDelayed = 4;
constexpr char kDeleted = 0;

// Writes a binlog in either format, with contents that make.py did not record from beanstalkd.
class Writer {
 public:
  explicit Writer(std::uint32_t version) : is_5_(version == 5) { number(version); }

  struct Job {
    JobId id = 0;
    char state = kReady;
    std::string tube = {};  // empty: a short record
    std::string body = {};
    std::uint32_t priority = 0;
    std::uint64_t delay = 0;  // in the format's unit, like all times
    std::uint64_t ttr = 1;
    std::uint64_t created = 0;
    std::uint64_t deadline = 0;
    JobCounters counters = {};
  };

  Writer& add(const Job& job) {
    number(static_cast<std::uint32_t>(job.tube.size()));
    image_ += job.tube;
    number(job.id);
    number(job.priority);
    number(std::uint32_t{0});
    number(job.delay);
    number(job.ttr);
    number(static_cast<std::uint32_t>(job.body.size() + 2));
    number(std::uint32_t{0});
    number(job.created);
    number(job.deadline);
    for (const auto count : {job.counters.reserves, job.counters.timeouts, job.counters.releases,
                             job.counters.buries, job.counters.kicks}) {
      number(count);
    }
    image_ += job.state;
    if (!is_5_) image_.append(3, '\0');
    if (!job.tube.empty()) image_ += job.body + "\r\n";
    return *this;
  }

  Writer& zeros(std::size_t count) {
    image_.append(count, '\0');
    return *this;
  }

  const std::string& image() const { return image_; }

 private:
  template <class T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) image_ += static_cast<char>(value >> (8 * i));
  }

  bool is_5_;
  std::string image_;
};

// A reader and the facts that it has emitted.
struct Reading {
  explicit Reading(const WallClock& clock = kNoOffset) : reader(clock, facts) {}

  Result<std::optional<TornBinlog>> read(std::string_view image, bool newest = true) {
    return reader.read(image, newest);
  }
  const FoldedJob& job(JobId id) const { return facts.jobs().at(id); }

  FoldedJobs facts;
  BinlogReader reader;
};

// Reads all files, each of which must be readable to its end.
Reading read_whole(const Golden& golden) {
  Reading reading{};
  for (const auto& [number, image] : golden.files) {
    const auto torn = reading.read(image, number == golden.files.rbegin()->first);
    REQUIRE(torn.ok());
    CHECK_FALSE(torn.value().has_value());
  }
  return reading;
}

Time at(std::int64_t nanoseconds) {
  return Time(Duration(nanoseconds));
}

void check_same(const FoldedJob& job, const SeenJob& seen, Time now) {
  CHECK(job.tube == seen.tube);
  CHECK(name_of(job.place.state) == seen.state);
  CHECK(job.place.priority == seen.priority);
  CHECK(job.place.delay.count == seen.delay);
  CHECK(job.ttr.count == seen.ttr);
  CHECK(job.counters == seen.counters);
  CHECK(job.body == seen.body);
  CHECK(whole_seconds(now - job.created) - seen.age <= 1);
  CHECK(whole_seconds(now - job.created) >= seen.age - 1);
  if (job.place.state != JobState::delayed) return;
  CHECK(whole_seconds(job.place.until - now) >= seen.time_left - 1);
  CHECK(whole_seconds(job.place.until - now) <= seen.time_left + 1);
}

TEST_CASE("the jobs of a real beanstalkd agree with its own report") {
  for (const char* name : kGoldenNames) {
    CAPTURE(name);
    const Golden golden = journal::golden(name);
    const Reading reading = read_whole(golden);
    CHECK(reading.facts.jobs().size() == golden.jobs.size());
    for (const auto& job : golden.jobs) {
      const JobId id = job.first;
      CAPTURE(id);
      REQUIRE(reading.facts.jobs().contains(id));
      check_same(reading.job(id), job.second, at(golden.now));
    }
    CHECK(reading.reader.next_job_id() == golden.next);
  }
}

TEST_CASE("buried jobs keep the order in which they were buried") {
  for (const char* name : {"states", "restarted"}) {
    CAPTURE(name);
    const Golden golden = journal::golden(name);
    const Reading reading = read_whole(golden);
    for (const auto& [tube, order] : golden.buried) CHECK(reading.facts.buried(tube) == order);
  }
  // Compaction has copied jobs in the order of their ids, and the records of their burials are
  // gone.
  const Golden golden = journal::golden("compacted");
  const auto order = read_whole(golden).facts.buried("graves");
  CHECK(std::ranges::is_permutation(order, golden.buried.at("graves")));
}

TEST_CASE("jobs are counted by state") {
  const Golden golden = journal::golden("states");
  const Reading reading = read_whole(golden);
  BinlogJobs expected;
  for (const auto& [id, seen] : golden.jobs) {
    expected.ready += seen.state == "ready";
    expected.delayed += seen.state == "delayed";
    expected.buried += seen.state == "buried";
  }
  const BinlogJobs jobs = reading.reader.jobs(at(golden.now));
  CHECK(jobs.ready == expected.ready);
  CHECK(jobs.delayed == expected.delayed);
  CHECK(jobs.buried == expected.buried);
  // In ten years no job is still delayed.
  CHECK(reading.reader.jobs(at(golden.now) + std::chrono::hours(87'600)).delayed == 0);
}

TEST_CASE("a newest file cut anywhere gives a prefix of the facts") {
  for (const char* name : kGoldenNames) {
    CAPTURE(name);
    const Golden golden = journal::golden(name);
    const std::string& newest = golden.files.rbegin()->second;
    std::optional<std::uint64_t> last_facts;
    for (std::size_t bytes = 0; bytes <= newest.size(); ++bytes) {
      CAPTURE(bytes);
      Reading reading{};
      for (const auto& [number, image] : golden.files) {
        const bool is_newest = number == golden.files.rbegin()->first;
        const auto torn = reading.read(is_newest ? image.substr(0, bytes) : image, is_newest);
        REQUIRE(torn.ok());
        if (torn.value()) CHECK(torn.value()->offset < bytes);
      }
      if (last_facts) {
        CHECK(reading.facts.facts() >= *last_facts);
        CHECK(reading.facts.facts() <= *last_facts + 1);
      }
      last_facts = reading.facts.facts();
    }
  }
}

TEST_CASE("a cut older file is damaged unless it is cut between records") {
  const std::string image = journal::golden("states").files.begin()->second;
  std::set<std::uint64_t> whole;
  for (std::size_t bytes = 1; bytes < image.size(); ++bytes) {
    Reading reading{};
    const auto torn = reading.read(image.substr(0, bytes), false);
    if (torn.ok()) {
      CHECK_FALSE(torn.value().has_value());
      whole.insert(reading.reader.records());
      continue;
    }
    CHECK(torn.error().message.find("damaged at byte ") != std::string::npos);
  }
  Reading reading{};
  REQUIRE(reading.read(image, false).ok());
  // Cuts after the version, and after each record except the last.
  CHECK(whole.size() == reading.reader.records());
}

TEST_CASE("with any byte changed, the facts are valid or an error results" *
          doctest::test_suite("slow")) {
  for (const char* name : kGoldenNames) {
    const Golden golden = journal::golden(name);
    for (const auto& [damaged, original] : golden.files) {
      for (std::size_t i = 0; i < original.size(); ++i) {
        for (const int mask : {0xff, 0x01, 0x80}) {
          Reading reading{};
          for (const auto& [number, image] : golden.files) {
            std::string flipped = image;
            if (number == damaged) flipped[i] = static_cast<char>(flipped[i] ^ mask);
            const auto torn = reading.read(flipped, number == golden.files.rbegin()->first);
            if (!torn.ok()) break;
          }
        }
      }
    }
  }
}

TEST_CASE("format 5 counts in microseconds, and its records are shorter") {
  Writer writer(5);
  writer.add({.id = 7,
              .state = kDelayed,
              .tube = "mail",
              .body = "hello",
              .priority = 1024,
              .delay = 5'000'000,
              .ttr = 60'000'001,
              .created = 1'000'000'000'000,
              .deadline = 1'000'005'000'000,
              .counters = {.reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5}});
  writer.add({.id = 8, .tube = "mail", .body = ""});
  writer.add({.id = 8, .state = kBuried, .priority = 3});
  writer.add({.id = 9, .tube = "mail", .body = "gone"});
  writer.add({.id = 9, .state = kDeleted});
  Reading reading{};
  const auto torn = reading.read(writer.zeros(500).image(), false);
  REQUIRE(torn.ok());
  CHECK_FALSE(torn.value().has_value());
  REQUIRE(reading.facts.jobs().size() == 2);
  const FoldedJob& job = reading.job(7);
  CHECK(job.tube == "mail");
  CHECK(job.body == "hello");
  CHECK(job.place == Placement{.state = JobState::delayed,
                               .priority = 1024,
                               .delay = {5},
                               .until = at(1'000'005'000'000'000),
                               .bury_order = 0});
  CHECK(job.ttr.count == 61);
  CHECK(job.created == at(1'000'000'000'000'000));
  CHECK(job.counters ==
        JobCounters{.reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5});
  CHECK(reading.job(8).place.state == JobState::buried);
  CHECK(reading.reader.next_job_id() == 10);
}

TEST_CASE("times are converted to the monotonic clock") {
  Writer writer(7);
  writer.add({.id = 1, .state = kDelayed, .tube = "t", .created = 5'000, .deadline = 9'000});
  Reading reading(WallClock{.offset = Duration(8'000)});
  REQUIRE(reading.read(writer.image()).ok());
  CHECK(reading.job(1).created == at(-3'000));
  CHECK(reading.job(1).place.until == at(1'000));
}

TEST_CASE("seconds are rounded up, and a TTR is at least one") {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Writer writer(7);
  writer.add({.id = 1, .tube = "t", .delay = 1, .ttr = 0});
  writer.add({.id = 2, .tube = "t", .delay = 2 * kSecond, .ttr = 2 * kSecond + 1});
  writer.add({.id = 3, .tube = "t", .delay = INT64_MAX, .ttr = UINT32_MAX * kSecond});
  Reading reading{};
  REQUIRE(reading.read(writer.image()).ok());
  CHECK(reading.job(1).place.delay.count == 1);
  CHECK(reading.job(1).ttr.count == 1);
  CHECK(reading.job(2).place.delay.count == 2);
  CHECK(reading.job(2).ttr.count == 3);
  CHECK(reading.job(3).place.delay.count == UINT32_MAX);
  CHECK(reading.job(3).ttr.count == UINT32_MAX);
}

TEST_CASE("a reserved job becomes ready") {
  Writer writer(7);
  writer.add({.id = 1, .state = kReserved, .tube = "t"});
  writer.add({.id = 2, .state = kBuried, .tube = "t"}).add({.id = 2, .state = kReserved});
  Reading reading{};
  REQUIRE(reading.read(writer.image()).ok());
  CHECK(reading.job(1).place.state == JobState::ready);
  CHECK(reading.job(2).place.state == JobState::ready);
}

TEST_CASE("records of a job without a whole record are ignored, but its id counts as used") {
  Writer writer(7);
  writer.add({.id = 41, .state = kBuried}).add({.id = 42, .state = kDeleted});
  Reading reading{};
  REQUIRE(reading.read(writer.image()).ok());
  CHECK(reading.facts.facts() == 0);
  CHECK(reading.reader.records() == 2);
  CHECK(reading.reader.next_job_id() == 43);
}

TEST_CASE("a copy made by compaction leaves a buried job in its place") {
  Writer first(7);
  for (const JobId id : {1U, 2U, 3U}) first.add({.id = id, .tube = "t"});
  for (const JobId id : {2U, 1U, 3U}) first.add({.id = id, .state = kBuried});
  Writer second(7);
  second.add({.id = 2, .state = kBuried, .tube = "t"});
  second.add({.id = 3, .tube = "t"});  // the job was kicked, and no record of that remains
  Reading reading{};
  REQUIRE(reading.read(first.image(), false).ok());
  REQUIRE(reading.read(second.image()).ok());
  CHECK(reading.facts.buried("t") == std::vector<JobId>{2, 1});
  Writer third(7);
  third.add({.id = 2, .state = kBuried});  // buried again: now the last job
  REQUIRE(reading.read(third.image()).ok());
  CHECK(reading.facts.buried("t") == std::vector<JobId>{1, 2});
}

TEST_CASE("a torn record followed only by zeros ends any file") {
  Writer writer(7);
  writer.add({.id = 1, .tube = "t", .body = "whole"});
  const std::size_t whole = writer.image().size();
  writer.add({.id = 2, .tube = "other", .body = "torn"});
  const std::string image = writer.image();
  for (std::size_t bytes = whole + 1; bytes < image.size() - 1; ++bytes) {
    CAPTURE(bytes);
    for (const bool newest : {false, true}) {
      std::string torn_image = image.substr(0, bytes);
      torn_image.resize(4096);
      Reading reading{};
      const auto torn = reading.read(torn_image, newest);
      REQUIRE(torn.ok());
      REQUIRE(torn.value().has_value());
      CHECK(torn.value()->offset == whole);
      CHECK(reading.facts.jobs().size() == 1);
    }
  }
}

TEST_CASE("an unreadable record is damage if other records follow") {
  Writer writer(7);
  writer.add({.id = 1, .tube = "t", .body = "whole", .created = 1});
  const std::size_t whole = writer.image().size();
  writer.add({.id = 2, .tube = "t", .body = "hurt", .created = 1});
  writer.add({.id = 3, .tube = "t", .created = 1}).zeros(100);
  const auto hurt = [&](std::size_t offset, char value) {
    std::string image = writer.image();
    image[whole + offset] = value;
    return image;
  };
  constexpr std::size_t kStruct = 4 + 1;
  const std::vector<std::string> images{
      hurt(0, '\xc9'),               // the length of the name: 201
      hurt(3, '\x80'),               // negative
      hurt(4, ' '),                  // the name
      hurt(kStruct, '\0'),           // the id
      hurt(kStruct + 7, '\x7f'),     // an id larger than any
      hurt(kStruct + 23, '\x80'),    // the delay, negative
      hurt(kStruct + 32, '\1'),      // the body's length, shorter than its line end
      hurt(kStruct + 32, '\5'),      // too short
      hurt(kStruct + 34, '\1'),      // beyond the file
      hurt(kStruct + 35, '\x7f'),    // beyond all bounds
      hurt(kStruct + 76, '\5'),      // the state
      hurt(kStruct + 76, '\0'),      // deleted
      hurt(kStruct + 80 + 4, '\n'),  // the line end of the body
  };
  for (const std::string& image : images) {
    Reading older{};
    const auto damage = older.read(image, false);
    REQUIRE_FALSE(damage.ok());
    CHECK(damage.error().message.starts_with("is damaged at byte " + std::to_string(whole) + ": "));
    Reading newest{};
    const auto same = newest.read(image, true);
    REQUIRE_FALSE(same.ok());
    CHECK(same.error().message == damage.error().message);
  }
}

TEST_CASE("of damage in the newest file with records after it nothing is imported") {
  Writer writer(7);
  std::vector<std::size_t> starts;
  for (JobId id = 1; id <= 40; ++id) {
    starts.push_back(writer.image().size());
    // Bodies of different lengths, so a wrong length does not end at the end of another record.
    const std::string body(id * id % 23, 'x');
    writer.add({.id = id, .tube = "mail", .body = body, .created = 1});
    if (id % 4 == 0) writer.add({.id = id - 1, .state = kDeleted, .created = 1});
  }
  Reading sound{};
  REQUIRE(sound.read(Writer(writer).zeros(2000).image(), true).ok());
  const std::size_t jobs = sound.facts.jobs().size();
  REQUIRE(jobs == 30);
  // Each bit of the lengths of the name and of the body, the name, the id and the state, with and
  // without zeros at the end of the file.
  const std::size_t name = 4;
  for (const std::size_t zeros : {0U, 2000U}) {
    const std::string image = Writer(writer).zeros(zeros).image();
    for (const std::size_t field : {std::size_t{0}, 4 + name + 32, 4 + name + 76}) {
      for (unsigned bit = 0; bit < 32; ++bit) {
        if (field == 4 + name + 76 && bit == 8) break;  // the state is one byte
        CAPTURE(zeros);
        CAPTURE(field);
        CAPTURE(bit);
        std::string flipped = image;
        flipped[starts[5] + field + bit / 8] ^= static_cast<char>(1U << bit % 8);
        Reading newest{};
        const auto torn = newest.read(flipped, true);
        if (torn.ok()) {
          // Another valid state.
          CHECK_FALSE(torn.value().has_value());
          CHECK(field == 4 + name + 76);
          CHECK(newest.facts.jobs().size() == jobs);
          continue;
        }
        const std::string& message = torn.error().message;
        constexpr std::string_view kDamaged = "is damaged at byte ";
        REQUIRE(message.starts_with(kDamaged));
        const std::size_t at = std::stoul(message.substr(kDamaged.size()));
        CHECK(at >= starts[5]);  // a length may read as a short record of a deleted job
        CHECK(at < starts[6]);
      }
    }
  }
}

TEST_CASE("an id that jumps too far is damage, in each record") {
  for (unsigned bit = 44; bit < 64; ++bit) {
    CAPTURE(bit);
    for (const bool is_short : {false, true}) {
      Writer writer(7);
      writer.add({.id = 1, .tube = "t"}).add({.id = 2, .tube = "t"});
      const std::size_t at = writer.image().size();
      const JobId id = 3 + (JobId{1} << bit);
      writer.add({.id = id, .state = kBuried, .tube = is_short ? "" : "t"});
      writer.add({.id = 4, .tube = "t"});
      Reading reading{};
      const auto damage = reading.read(writer.image(), true);
      REQUIRE_FALSE(damage.ok());
      CHECK(damage.error().message.starts_with(
          fmt::format("is damaged at byte {}: a job's id is ", at)));
    }
  }
  // A copy of an old job may precede the newest job.
  Writer writer(7);
  writer.add({.id = 5, .tube = "t"}).add({.id = JobId{1} << 43, .tube = "t"});
  Reading reading{};
  REQUIRE(reading.read(writer.image(), true).ok());
  CHECK(reading.facts.jobs().size() == 2);
}

TEST_CASE("a file that beanstalkd has not written to has no jobs") {
  for (const std::size_t bytes : {0U, 1U, 4U, 4096U}) {
    Reading reading{};
    const auto torn = reading.read(std::string(bytes, '\0'), false);
    REQUIRE(torn.ok());
    CHECK_FALSE(torn.value().has_value());
  }
}

TEST_CASE("another format is refused, in the newest file or an older one") {
  const auto message = [](const std::string& image) {
    Reading reading{};
    const auto torn = reading.read(image);
    REQUIRE_FALSE(torn.ok());
    return torn.error().message;
  };
  CHECK(message(Writer(6).image()) == "is of format 6; only 5 and 7 can be read");
  CHECK(message(Writer(8).image()) == "is of format 8; only 5 and 7 can be read");
  CHECK(message(std::string("\0\0\0\7", 4)).find("byte order") != std::string::npos);
  CHECK(message(std::string("\0\0\0\5rest", 8)).find("byte order") != std::string::npos);
}

TEST_CASE("the name of a binlog has its number without leading zeros") {
  CHECK(binlog_number("binlog.1") == 1);
  CHECK(binlog_number("binlog.4294967296") == 4294967296);
  for (const char* name : {"binlog.", "binlog.0", "binlog.01", "binlog.1x", "binlog.-1",
                           "binlog. 1", "binlog.+1", "binlog", "xbinlog.1", "binlog.1.gz",
                           "binlog.18446744073709551615", "binlog.18446744073709551616"}) {
    CAPTURE(name);
    CHECK_FALSE(binlog_number(name).has_value());
  }
}

}  // namespace
}  // namespace tubed::journal
