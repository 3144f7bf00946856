// Tests of the disk of the journal's tests: durability, the contents after a crash, failures.
#include "tests/journal/test_disk.h"

#include <functional>
#include <set>

#include <doctest/doctest.h>

namespace tubed::journal {

namespace {

using Kind = Outcome::Kind;

constexpr std::uint64_t kSeeds = 400;

// The results of background operations, in order of completion.
struct Ends {
  std::vector<std::string> names;
  std::vector<Outcome> outcomes;
  FileId file = 0;  // of the last creation

  Done note(const std::string& name) {
    return [this, name](const Outcome& outcome) {
      names.push_back(name);
      outcomes.push_back(outcome);
    };
  }
  Created created() {
    return [this](const Outcome& outcome, FileId id) {
      names.push_back("create");
      outcomes.push_back(outcome);
      file = id;
    };
  }
};

FileId create(TestDisk& disk, const std::string& name, std::uint64_t bytes) {
  Ends ends;
  disk.create(name, "head", bytes, ends.created());
  disk.run_all();
  REQUIRE(ends.outcomes.at(0).ok());
  return ends.file;
}

// Returns the possible contents after a power loss, over many seeds, if the machine is switched off
// before each step of `act` on a disk prepared by `prepare`.
std::set<TestDisk::Contents> states_after(const std::function<void(TestDisk&)>& prepare,
                                          const std::function<void(TestDisk&)>& act) {
  TestDisk whole;
  prepare(whole);
  act(whole);
  TestDisk start;
  prepare(start);
  std::set<TestDisk::Contents> states;
  for (std::uint64_t step = start.steps(); step <= whole.steps(); ++step) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      TestDisk disk;
      prepare(disk);
      disk.crash_at(step);
      act(disk);
      Random random(seed);
      states.insert(disk.after_crash(random, Fate::power_loss).files());
    }
  }
  return states;
}

std::string text_of(TestDisk& disk, const std::string& name) {
  const auto file = disk.open(name);
  REQUIRE(file.ok());
  return disk.read(file.value()).value();
}

}  // namespace

TEST_CASE(
    "a background operation is done when it is run, and does not complete within the request") {
  TestDisk disk;
  Ends ends;
  disk.create("a", "head", 16, ends.created());
  CHECK(ends.names.empty());
  CHECK_FALSE(disk.has("a"));
  CHECK(disk.run_one());
  CHECK(ends.names == std::vector<std::string>{"create"});
  CHECK(disk.contents("a") == std::string("head") + std::string(12, '\0'));

  disk.write(ends.file, 4, {"some", "", " text"}, Sync::yes, ends.note("write"));
  CHECK(disk.pending() == 1);
  disk.run_all();
  CHECK(disk.contents("a") == std::string("headsome text") + std::string(3, '\0'));
  CHECK(disk.durable_files() == disk.files());
  CHECK_FALSE(disk.run_one());
}

TEST_CASE("operations that a completion starts are done by run_all too") {
  TestDisk disk;
  const FileId file = create(disk, "a", 8);
  Ends ends;
  disk.write(file, 4, {"1"}, Sync::no, [&](const Outcome&) {
    disk.sync(file, ends.note("sync"));
    CHECK(ends.names.empty());
  });
  disk.run_all();
  CHECK(ends.names == std::vector<std::string>{"sync"});
}

TEST_CASE("operations are done in order, and shuffled only from file to file") {
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    TestDisk disk;
    const FileId a = create(disk, "a", 8);
    const FileId b = create(disk, "b", 8);
    if (seed > 0) disk.shuffle(seed);
    Ends ends;
    disk.write(a, 4, {"1"}, Sync::no, ends.note("a1"));
    disk.write(a, 5, {"2"}, Sync::no, ends.note("a2"));
    disk.write(b, 4, {"1"}, Sync::no, ends.note("b1"));
    disk.run_all();
    if (seed == 0) CHECK(ends.names == std::vector<std::string>{"a1", "a2", "b1"});
    orders.insert(ends.names);
  }
  CHECK(orders == std::set<std::vector<std::string>>{
                      {"a1", "a2", "b1"}, {"a1", "b1", "a2"}, {"b1", "a1", "a2"}});
}

TEST_CASE(
    "writes that were not synced are kept, lost or torn by a power loss, and kept by a kill") {
  const std::string text(3000, 'x');
  std::set<std::string> images;
  bool sectors_alone = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 4096);
    disk.write(file, 100, {text}, Sync::no, [](const Outcome&) {});
    disk.run_all();
    CHECK(disk.durable_files()["a"].find('x') == std::string::npos);
    if (seed % 2 == 0) {
      CHECK(disk.after_crash(random, Fate::kill).files() == disk.files());
      continue;
    }
    TestDisk after = disk.after_crash(random, Fate::power_loss);
    const std::string& image = after.contents("a");
    CHECK(image.size() == 4096);
    CHECK(after.durable_files() == after.files());
    images.insert(image);
    if (image.find('x') != std::string::npos && image[100] != 'x') {
      sectors_alone = true;
      CHECK(image.find('x') % 512 == 0);
    }
  }
  CHECK(images.size() > 40);
  CHECK(sectors_alone);
  CHECK(images.contains(std::string("head") + std::string(4092, '\0')));
}

TEST_CASE("two writes that were not synced may survive in any combination") {
  std::set<std::string> images;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 6);
    disk.write(file, 4, {"1"}, Sync::no, [](const Outcome&) {});
    disk.write(file, 5, {"2"}, Sync::no, [](const Outcome&) {});
    disk.run_all();
    images.insert(disk.after_crash(random, Fate::power_loss).contents("a").substr(4));
  }
  using namespace std::string_literals;
  CHECK(images == std::set<std::string>{"\0\0"s, "1\0"s, "\0"s + "2"s, "12"s});
}

TEST_CASE("a sync covers only writes that ended before it") {
  std::set<std::string> images;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 8);
    disk.write(file, 4, {"1"}, Sync::no, [](const Outcome&) {});
    disk.run_all();
    disk.write(file, 5, {"2"}, Sync::no, [](const Outcome&) {});
    disk.sync(file, [](const Outcome&) {});  // the second write was not complete yet
    disk.run_all();
    images.insert(disk.after_crash(random, Fate::power_loss).contents("a").substr(4, 2));
  }
  using namespace std::string_literals;
  CHECK(images == std::set<std::string>{"1\0"s, "12"s});
}

TEST_CASE("an unsynced growth is kept or lost, together with the writes in it") {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 8);
    disk.allocate(file, 8, 16, [](const Outcome&) {});
    disk.write(file, 4, {"12345678"}, Sync::no, [](const Outcome&) {});
    disk.run_all();
    sizes.insert(disk.after_crash(random, Fate::power_loss).contents("a").size());
  }
  CHECK(sizes.contains(8));
  CHECK(sizes.contains(12));
  CHECK(sizes.contains(16));
}

TEST_CASE("a created file exists whole or not at all, whenever the machine goes off") {
  const std::string whole = std::string("head") + std::string(4, '\0');
  const auto states = states_after([](TestDisk&) {},
                                   [](TestDisk& disk) {
                                     disk.create("a", "head", 8, [](const Outcome&, FileId) {});
                                     disk.run_all();
                                   });
  bool unfinished = false;
  for (const TestDisk::Contents& files : states) {
    if (files.contains("a")) CHECK(files.at("a") == whole);
    CHECK(files.size() <= 1);
    unfinished = unfinished || files.contains("a.new");
  }
  CHECK(unfinished);
  CHECK(states.contains({}));
  CHECK(states.contains({{"a", whole}}));
}

TEST_CASE(
    "a stored file exists whole or not at all; a moved or removed file is in one state or the "
    "other") {
  const auto some_file = [](TestDisk& disk) { disk.place("a", "old"); };
  for (const TestDisk::Contents& files :
       states_after(some_file, [](TestDisk& disk) { (void)disk.store("b", "new").ok(); })) {
    CHECK(files.at("a") == "old");
    if (files.contains("b")) CHECK(files.at("b") == "new");
  }
  CHECK(states_after(some_file, [](TestDisk& disk) { (void)disk.remove_now("a").ok(); }) ==
        std::set<TestDisk::Contents>{{{"a", "old"}}, {}});
  CHECK(states_after(some_file, [](TestDisk& disk) { (void)disk.move("a", "in/a").ok(); }) ==
        std::set<TestDisk::Contents>{{{"a", "old"}}, {{"in/a", "old"}}});
  CHECK(states_after(some_file, [](TestDisk& disk) {
          const auto file = disk.open("a");
          (void)disk.truncate(file.value(), 1).ok();
        }) == std::set<TestDisk::Contents>{{{"a", "old"}}, {{"a", "o"}}});
}

TEST_CASE("a reused file is the old file, absent, or complete under its new name") {
  const std::string whole = "hd" + std::string(6, '\0');
  bool unfinished = false;
  std::set<TestDisk::Contents> states;
  const auto found = states_after([](TestDisk& disk) { disk.place("a", "old text"); },
                                  [](TestDisk& disk) {
                                    disk.reuse("a", "b", "hd", 8, [](const Outcome&, FileId) {});
                                    disk.run_all();
                                  });
  for (TestDisk::Contents files : found) {
    unfinished = files.erase("b.new") > 0 || unfinished;
    states.insert(files);
  }
  CHECK(unfinished);
  CHECK(states == std::set<TestDisk::Contents>{{{"a", "old text"}}, {}, {{"b", whole}}});
}

TEST_CASE("a removal without space is half done, and is completed by a retry") {
  TestDisk disk;
  disk.place("a", "text");
  Ends ends;
  disk.fail_after(Operation::remove, 0, Outcome::Kind::no_space, "No space left on device");
  disk.remove("a", ends.note("first"));
  disk.run_all();
  CHECK_FALSE(disk.has("a"));
  CHECK(disk.durable_files().contains("a"));
  disk.remove("a", ends.note("second"));
  disk.run_all();
  CHECK(disk.durable_files().empty());
}

TEST_CASE("an operation that has succeeded is durable at once") {
  TestDisk disk;
  Ends ends;
  CHECK(disk.store("a", "text").ok());
  CHECK(disk.durable_files() == TestDisk::Contents{{"a", "text"}});
  const FileId file = disk.open("a").value();
  disk.trim(file, 2, ends.note("trim"));
  disk.run_all();
  CHECK(disk.durable_files() == TestDisk::Contents{{"a", "te"}});
  disk.close(file);
  CHECK(disk.move("a", "in/a").ok());
  CHECK(disk.durable_files() == TestDisk::Contents{{"in/a", "te"}});
  CHECK(disk.list().value().empty());  // a folder is not a file
  disk.remove("in/a", ends.note("remove"));
  disk.run_all();
  CHECK(disk.durable_files().empty());
}

TEST_CASE("once the machine is off nothing is done and nothing completes") {
  TestDisk disk;
  const FileId file = create(disk, "a", 4096);
  const std::string text(2000, 'x');
  Ends ends;
  disk.crash_at(disk.steps() + 2);
  disk.write(file, 0, {text}, Sync::no, ends.note("write"));
  disk.sync(file, ends.note("sync"));
  disk.run_all();
  CHECK(disk.off());
  CHECK(ends.names.empty());
  CHECK(disk.contents("a").find_last_of('x') == 1023);  // two steps of 512 bytes
  disk.sync(file, ends.note("sync"));
  CHECK_FALSE(disk.run_one());
  CHECK_FALSE(disk.read(file).ok());
  CHECK_FALSE(disk.store("b", "text").ok());
  CHECK_FALSE(disk.list().ok());
  disk.close(file);
}

TEST_CASE("operations in progress may have done any of their steps at a crash, a sync included") {
  std::set<std::string> images;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId a = create(disk, "a", 4);
    disk.write(a, 0, {"1234"}, Sync::yes, [](const Outcome&) { FAIL("it is off"); });
    disk.create("b", "", 4, [](const Outcome&, FileId) { FAIL("it is off"); });
    TestDisk after = disk.after_crash(random, Fate::kill);
    images.insert(after.contents("a") + (after.has("b") ? " b" : ""));
  }
  CHECK(images == std::set<std::string>{"head", "1234", "head b", "1234 b"});
}

TEST_CASE("writes before a kill are still not durable") {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 8);
    disk.write(file, 4, {"1"}, Sync::no, [](const Outcome&) {});
    disk.run_all();
    TestDisk next = disk.after_crash(random, Fate::kill);
    if (seed % 2 == 0) CHECK(next.sync_now(next.open("a").value()).ok());
    const std::string image = next.after_crash(random, Fate::power_loss).contents("a");
    if (seed % 2 == 0) CHECK(image[4] == '1');
    lost = lost || image[4] != '1';
  }
  CHECK(lost);
}

TEST_CASE("an operation fails on request, once or repeatedly, and says what failed and why") {
  TestDisk disk;
  const FileId file = create(disk, "a", 1024);
  const std::string text(1024, 'x');
  disk.fail_after(Operation::write, 1, Kind::failed, "Input/output error", 2);
  Ends ends;
  for (int i = 0; i < 4; ++i) disk.write(file, 0, {text}, Sync::no, ends.note("write"));
  disk.run_one();
  CHECK(ends.outcomes[0].ok());
  disk.run_all();
  CHECK(ends.outcomes[1].kind == Kind::failed);
  CHECK(ends.outcomes[1].reason == "cannot write a: Input/output error");
  CHECK(ends.outcomes[2].kind == Kind::failed);
  CHECK(ends.outcomes[3].ok());

  disk.fail_after(Operation::store, 0, Kind::failed, "Permission denied");
  CHECK(disk.store("b", "text").error().message == "cannot store b: Permission denied");
  CHECK(disk.store("b", "text").ok());
  disk.fail_after(Operation::read, 0);
  CHECK_FALSE(disk.read(file).ok());
  CHECK(text_of(disk, "b") == "text");
}

TEST_CASE("a failed write has written a part; for lack of space, nothing") {
  TestDisk disk;
  const FileId file = create(disk, "a", 1024);
  const std::string text(1024, 'x');
  Ends ends;
  disk.fail_after(Operation::write, 0, Kind::no_space, "No space left on device");
  disk.write(file, 0, {text}, Sync::yes, ends.note("write"));
  disk.run_all();
  CHECK(ends.outcomes[0].kind == Kind::no_space);
  CHECK(disk.contents("a").find('x') == std::string::npos);
  disk.fail_after(Operation::write, 0);
  disk.write(file, 0, {text}, Sync::yes, ends.note("write"));
  disk.run_all();
  CHECK(ends.outcomes[1].kind == Kind::failed);
  CHECK(disk.contents("a").find_last_of('x') == 511);
  CHECK(disk.durable_files()["a"].find('x') == std::string::npos);
}

TEST_CASE("writes of a failed sync are not made durable by the next sync") {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    TestDisk disk;
    Random random(seed);
    const FileId file = create(disk, "a", 8);
    Ends ends;
    disk.fail_after(Operation::sync, 0);
    disk.write(file, 4, {"1"}, Sync::yes, ends.note("write"));
    disk.run_all();
    disk.write(file, 5, {"2"}, Sync::yes, ends.note("write"));
    disk.run_all();
    CHECK(ends.outcomes[0].reason == "cannot sync a: Input/output error");
    CHECK(ends.outcomes[1].ok());
    const std::string image = disk.after_crash(random, Fate::power_loss).contents("a");
    CHECK(image[5] == '2');
    lost = lost || image[4] != '1';
  }
  CHECK(lost);
}

TEST_CASE("a full disk accepts no new files and no growth, but writes to allocated space") {
  TestDisk disk;
  disk.set_capacity(20);
  const FileId file = create(disk, "a", 16);
  Ends ends;
  disk.allocate(file, 16, 24, ends.note("allocate"));
  disk.create("b", "", 8, ends.created());
  disk.write(file, 4, {"text"}, Sync::yes, ends.note("write"));
  disk.run_all();
  CHECK(ends.outcomes[0].kind == Kind::no_space);
  CHECK(ends.outcomes[0].reason == "cannot allocate a: No space left on device");
  CHECK(ends.outcomes[1].kind == Kind::no_space);
  CHECK(ends.outcomes[2].ok());
  CHECK_FALSE(disk.store("c", "12345").ok());
  CHECK(disk.store("c", "1234").ok());
  CHECK(disk.total_bytes() == 20);
}

TEST_CASE("no file replaces another") {
  TestDisk disk(TestDisk::Contents{{"a", "1"}, {"b", "2"}});
  Ends ends;
  CHECK_FALSE(disk.store("a", "text").ok());
  CHECK_FALSE(disk.move("a", "b").ok());
  disk.create("a", "", 4, ends.created());
  disk.run_all();
  CHECK(ends.outcomes[0].kind == Kind::failed);
  CHECK(disk.files() == TestDisk::Contents{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("operations are counted and logged") {
  TestDisk disk;
  const FileId file = create(disk, "a", 8);
  disk.write(file, 4, {"ab", "c"}, Sync::yes, [](const Outcome&) {});
  disk.allocate(file, 8, 12, [](const Outcome&) {});
  disk.sync(file, [](const Outcome&) {});
  disk.run_all();
  disk.close(file);
  disk.remove("a", [](const Outcome&) {});
  disk.run_all();
  CHECK(disk.count(Operation::write) == 1);
  CHECK(disk.count(Operation::sync) == 2);
  CHECK(disk.count(Operation::create) == 1);
  CHECK(disk.take_log() == std::vector<std::string>{"create a to 8", "write a 4+3 sync",
                                                    "allocate a to 12", "sync a", "remove a"});
  CHECK(disk.take_log().empty());
}

TEST_CASE("damage is durable at once") {
  TestDisk disk(TestDisk::Contents{{"a", "abc"}, {"b", "2"}});
  disk.flip("a", 1, 0x01);
  CHECK(disk.contents("a") == "acc");
  disk.cut("a", 1);
  disk.lose("b");
  CHECK(disk.durable_files() == TestDisk::Contents{{"a", "a"}});
}

}  // namespace tubed::journal
