#include "journal/import.h"

#include <doctest/doctest.h>

#include "journal/recovery.h"
#include "journal/segment.h"
#include "tests/journal/binlogs/folded_jobs.h"
#include "tests/journal/binlogs/golden.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {
namespace {

using Contents = TestDisk::Contents;

Contents binlogs_of(const Golden& golden) {
  Contents files;
  for (const auto& [number, image] : golden.files) {
    files.emplace("binlog." + std::to_string(number), image);
  }
  return files;
}

Contents golden_files(const std::string& name) {
  return binlogs_of(golden(name));
}

// Small segments, to make several of them.
LogCopy::Settings settings() {
  return {.directory = 77,
          .segment_bytes = 2048,
          .clock = WallClock{.offset = Duration(golden("states").now - 1'000'000)},
          .now = golden("states").now};
}

struct Imported {
  Result<std::optional<ImportReport>> result;
  std::vector<std::string> log;
};

Imported import_on(TestDisk& disk) {
  std::vector<std::string> log;
  auto result = import_binlogs(
      disk.storage(), settings(), [&](const std::string& line) { log.push_back(line); }, nullptr);
  return {std::move(result), std::move(log)};
}

// The result of recovering the journal.
class Recovered final : public RecordSink {
 public:
  explicit Recovered(TestDisk& disk) {
    auto examined =
        examine(disk.storage(), settings().clock, *this, [](std::uint64_t, std::uint64_t) {});
    REQUIRE(examined.ok());
    found = std::move(*examined);
  }

  void record(std::uint64_t /*segment*/, std::uint64_t /*offset*/, std::size_t /*bytes*/,
              const Record& record) override {
    if (const auto* fact = std::get_if<Fact>(&record)) jobs.fact(*fact);
  }

  Examined found;
  FoldedJobs jobs;
};

// Returns the jobs of binlogs, without a journal in between.
FoldedJobs jobs_of(const Contents& binlogs) {
  std::map<std::uint64_t, std::string> files;
  for (const auto& [name, image] : binlogs) files.emplace(binlog_number(name).value(), image);
  FoldedJobs jobs;
  BinlogReader reader(settings().clock, jobs);
  for (const auto& [number, image] : files) {
    REQUIRE(reader.read(image, number == files.rbegin()->first).ok());
  }
  return jobs;
}

Contents in_imported(const Contents& binlogs) {
  Contents files;
  for (const auto& [name, image] : binlogs) files.emplace("imported/" + name, image);
  return files;
}

Contents without_segments(Contents files) {
  std::erase_if(files, [](const auto& file) { return sequence_of(file.first).has_value(); });
  return files;
}

// Checks that all binlogs were converted and moved, and no other file exists.
void check_finished(TestDisk& disk, const Contents& binlogs) {
  CHECK(without_segments(disk.files()) == in_imported(binlogs));
  const Recovered recovered(disk);
  CHECK(recovered.found.clean);
  CHECK(recovered.found.directory == 77);
  CHECK(recovered.found.leftovers.empty());
  CHECK(recovered.jobs.jobs() == jobs_of(binlogs).jobs());
}

TEST_CASE("the binlogs become a journal of the same jobs, and are moved unchanged to imported/") {
  for (const char* name : kGoldenNames) {
    CAPTURE(name);
    const Golden golden = journal::golden(name);
    TestDisk disk(binlogs_of(golden));
    auto imported = import_on(disk);
    REQUIRE(imported.result.ok());
    REQUIRE(imported.result->has_value());
    const ImportReport& report = **imported.result;
    CHECK(report.files == golden.files.size());
    CHECK(report.ready + report.delayed + report.buried == golden.jobs.size());
    CHECK(report.torn.empty());
    check_finished(disk, binlogs_of(golden));
    CHECK(disk.durable_files() == disk.files());
    CHECK(Recovered(disk).found.next_job_id == golden.next);
  }
}

TEST_CASE("without binlogs nothing is done") {
  for (const Contents& files :
       {Contents{}, Contents{{"journal.0000000001", "of anything"}, {"binlog.x", "not one"}}}) {
    TestDisk disk(files);
    auto imported = import_on(disk);
    REQUIRE(imported.result.ok());
    CHECK_FALSE(imported.result->has_value());
    CHECK(disk.files() == files);
    CHECK(imported.log.empty());
  }
}

TEST_CASE("a second start finds nothing to do") {
  TestDisk disk(golden_files("states"));
  REQUIRE(import_on(disk).result.ok());
  const Contents after = disk.files();
  auto again = import_on(disk);
  REQUIRE(again.result.ok());
  CHECK_FALSE(again.result->has_value());
  CHECK(disk.files() == after);
}

TEST_CASE("binlogs next to a journal are refused, and nothing changes") {
  Contents files = golden_files("restarted");
  files.emplace("journal.0000000003", "of anything");
  TestDisk disk(files);
  auto imported = import_on(disk);
  REQUIRE_FALSE(imported.result.ok());
  const std::string& message = imported.result.error().message;
  CHECK(message.find("binlog.1") != std::string::npos);
  CHECK(message.find("journal.0000000003") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(disk.files() == files);
}

TEST_CASE("a gap between the binlogs is refused with its number; an empty file fills it") {
  Contents files = golden_files("states");
  REQUIRE(files.erase("binlog.2") == 1);
  TestDisk disk(files);
  auto imported = import_on(disk);
  REQUIRE_FALSE(imported.result.ok());
  CHECK(imported.result.error().message.starts_with("binlog.2 is missing"));
  CHECK(disk.files() == files);

  disk.place("binlog.2", "");
  files.emplace("binlog.2", "");
  REQUIRE(import_on(disk).result.ok());
  check_finished(disk, files);
}

TEST_CASE("binlogs are read in the order of their numbers") {
  // In text order, 10 precedes 9.
  Contents files;
  std::uint64_t number = 8;
  for (const auto& [old_number, image] : golden("states").files) {
    files.emplace("binlog." + std::to_string(number++), image);
  }
  TestDisk disk(files);
  REQUIRE(import_on(disk).result.ok());
  check_finished(disk, files);
  CHECK(Recovered(disk).jobs.jobs() == jobs_of(golden_files("states")).jobs());
}

TEST_CASE("damage is reported with file and place, and the directory is unchanged") {
  Contents files = golden_files("states");
  files.at("binlog.3").resize(1999);
  TestDisk disk(files);
  auto imported = import_on(disk);
  REQUIRE_FALSE(imported.result.ok());
  CHECK(imported.result.error().message.starts_with("binlog.3 is damaged at byte "));
  CHECK(disk.durable_files() == files);
}

TEST_CASE("a torn end of the newest file is in the report") {
  Contents files = golden_files("restarted");
  std::string& newest = files.at("binlog.2");
  newest.resize(newest.find_last_not_of('\0') - 20);
  TestDisk disk(files);
  auto imported = import_on(disk);
  REQUIRE(imported.result.ok());
  const ImportReport& report = imported.result->value();
  REQUIRE(report.torn.size() == 1);
  CHECK(report.torn.front().starts_with("binlog.2 ends at byte "));
  check_finished(disk, files);
}

TEST_CASE("a marker without its files is reported, and nothing changes") {
  for (const Contents& files : {Contents{{"import.begun", ""}}, Contents{{"import.done", ""}},
                                Contents{{"import.begun", ""}, {"journal.0000000001", "begun"}},
                                Contents{{"import.done", ""}, {"binlog.1", "not yet moved"}}}) {
    TestDisk disk(files);
    auto imported = import_on(disk);
    REQUIRE_FALSE(imported.result.ok());
    CHECK(imported.result.error().message.starts_with("import."));
    CHECK(disk.files() == files);
  }
}

TEST_CASE("the journal of an interrupted import is written again") {
  Contents files = golden_files("states");
  TestDisk disk(files);
  disk.place("import.begun", "");
  disk.place("journal.0000000001", "half");
  disk.place("journal.0000000009", "of nothing");
  auto imported = import_on(disk);
  REQUIRE(imported.result.ok());
  CHECK(imported.result->has_value());
  check_finished(disk, files);
}

TEST_CASE("a binlog in imported/ is never replaced") {
  Contents files = golden_files("states");
  files.emplace("imported/binlog.2", "an older one");
  TestDisk disk(files);
  auto imported = import_on(disk);
  REQUIRE_FALSE(imported.result.ok());
  CHECK(disk.contents("imported/binlog.2") == "an older one");
  CHECK(disk.contents("binlog.2") == files.at("binlog.2"));
  // The next start continues when the obstacle has been removed.
  disk.lose("imported/binlog.2");
  REQUIRE(import_on(disk).result.ok());
  files.erase("imported/binlog.2");
  check_finished(disk, files);
}

// Checks that no binlog was removed or changed, whether or not it was moved.
void check_all_there(const Contents& files, const Contents& binlogs) {
  for (const auto& binlog : binlogs) {
    const std::string& name = binlog.first;
    CAPTURE(name);
    const auto here = files.find(name);
    const auto moved = files.find("imported/" + name);
    const auto found = here == files.end() ? moved : here;
    REQUIRE(found != files.end());
    CHECK(found->second == binlog.second);
  }
}

TEST_CASE(
    "after an interruption at any step, even twice, the next start finishes and no binlog is "
    "lost") {
  const Contents binlogs = golden_files("states");
  TestDisk whole(binlogs);
  REQUIRE(import_on(whole).result.ok());
  const std::uint64_t steps = whole.steps();
  CHECK(steps > 20);
  Random random(20240211);
  for (const Fate fate : {Fate::power_loss, Fate::kill}) {
    for (std::uint64_t first = 0; first < steps; ++first) {
      CAPTURE(first);
      TestDisk disk(binlogs);
      disk.crash_at(first);
      CHECK_FALSE(import_on(disk).result.ok());
      TestDisk second = disk.after_crash(random, fate);
      check_all_there(second.files(), binlogs);
      // One of the remaining steps.
      second.crash_at(second.steps() + random() % (steps + 5));
      if (!import_on(second).result.ok()) {
        TestDisk third = second.after_crash(random, fate);
        check_all_there(third.files(), binlogs);
        REQUIRE(import_on(third).result.ok());
        check_finished(third, binlogs);
      } else {
        second.crash_at(UINT64_MAX);
        check_finished(second, binlogs);
      }
    }
  }
}

TEST_CASE("when any operation fails the start fails, and the next start finishes") {
  const Contents binlogs = golden_files("compacted");
  for (const Operation operation : {Operation::list, Operation::open, Operation::read,
                                    Operation::store, Operation::remove_now, Operation::move}) {
    TestDisk counted(binlogs);
    REQUIRE(import_on(counted).result.ok());
    const std::uint64_t times = counted.count(operation);
    CHECK(times > 0);
    for (std::uint64_t passes = 0; passes < times; ++passes) {
      CAPTURE(static_cast<int>(operation));
      CAPTURE(passes);
      TestDisk disk(binlogs);
      disk.fail_after(operation, passes);
      auto imported = import_on(disk);
      REQUIRE_FALSE(imported.result.ok());
      CHECK(imported.result.error().message.find("Input/output error") != std::string::npos);
      check_all_there(disk.files(), binlogs);
      REQUIRE(import_on(disk).result.ok());
      check_finished(disk, binlogs);
    }
  }
}

TEST_CASE("a disk without space for the journal leaves the binlogs unchanged") {
  const Contents binlogs = golden_files("states");
  TestDisk disk(binlogs);
  disk.set_capacity(disk.total_bytes() + 3000);
  CHECK_FALSE(import_on(disk).result.ok());
  CHECK(disk.durable_files() == binlogs);
  disk.set_capacity(UINT64_MAX);
  REQUIRE(import_on(disk).result.ok());
  check_finished(disk, binlogs);
}

}  // namespace
}  // namespace tubed::journal
