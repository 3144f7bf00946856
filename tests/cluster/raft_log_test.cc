#include "cluster/raft_log.h"

#include "tests/cluster/raft_log_rig.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;
using journal::Operation;
using Reports = std::vector<std::pair<Index, Term>>;

constexpr auto kNoSpace = journal::Outcome::Kind::no_space;

}  // namespace

TEST_CASE("a log begins empty, at index 1") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  CHECK(rig.log->first() == 1);
  CHECK(rig.log->last() == 0);
  CHECK(rig.log->stored() == 0);
  CHECK(rig.log->term_of(0) == 0);
  CHECK(rig.log->term_of(1) == 0);
  CHECK(rig.log->idle());
  CHECK(rig.log->bytes() == 0);
  CHECK(rig.log->has_room(1'000'000));
  CHECK(!rig.log->cut_at_open());
}

TEST_CASE("the files of a log have 1/64 of its size, from 4 to 64 MiB") {
  constexpr std::uint64_t kMiB = 1 << 20;
  CHECK(raft_file_bytes(0) == 4 * kMiB);
  CHECK(raft_file_bytes(256 * kMiB) == 4 * kMiB);
  CHECK(raft_file_bytes(1024 * kMiB) == 16 * kMiB);
  CHECK(raft_file_bytes(1'000'000'000) == 15'622'144);
  CHECK(raft_file_bytes(64 * 1024 * kMiB) == 64 * kMiB);
  CHECK(RaftLogOptions().file_bytes == 16 * kMiB);
  const RaftLogOptions options = raft_log_options(7, 2048 * kMiB);
  CHECK(options.file_bytes == 32 * kMiB);
  CHECK(options.log_bytes == 2048 * kMiB);
  CHECK(options.cluster == 7);
}

TEST_CASE("entries are counted with their bytes on disk, whatever was cut or replaced") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 10, 40));  // 64 bytes on disk
  CHECK(rig.log->bytes() == 640);
  CHECK(rig.log->bytes_of(3, 5) == 3 * 64);
  CHECK(rig.log->bytes_of(0, 100) == 640);
  CHECK(rig.log->bytes_of(6, 5) == 0);
  CHECK(rig.log->unstored_bytes() == 0);
  rig.log->cut(5);
  CHECK(rig.log->bytes() == 6 * 64);
  CHECK(rig.log->bytes_of(1, 5) == 64);
  rig.append(8, entries_of(2, 2, 8));
  CHECK(rig.log->bytes() == 3 * 64 + 2 * 32);
  CHECK(rig.log->unstored_bytes() == 64);
  rig.settle();
  CHECK(rig.log->unstored_bytes() == 0);
  rig.log->cut(100);
  CHECK(rig.log->bytes() == 0);
  rig.append(entries_of(2, 1, 8));
  CHECK(rig.log->bytes() == 32);
}

TEST_CASE("entries are stored, and exist after a restart") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.append({entry_of(1, "a"), entry_of(1, "", EntryType::barrier)});
  CHECK(rig.log->last() == 2);
  CHECK(rig.log->stored() == 0);
  CHECK(rig.reports.empty());
  rig.settle();
  CHECK(rig.log->stored() == 2);
  CHECK(rig.reports == Reports{{2, 1}});
  rig.store({entry_of(3, std::string(300, 'c'), EntryType::change)});
  REQUIRE(!rig.restart());
  CHECK(rig.terms() == "1:1 2:1 3:3");
  CHECK(rig.log->stored() == 3);
  CHECK(rig.log->at(1).data.view() == "a");
  CHECK(rig.log->at(2).data.view().empty());
  CHECK(rig.log->at(2).type == EntryType::barrier);
  CHECK(rig.log->at(3).data.view() == std::string(300, 'c'));
  CHECK(rig.log->at(3).type == EntryType::change);
}

TEST_CASE("entries appended during a write go into one next batch") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.settle();
  rig.append(entries_of(1, 1));
  rig.log->flush();
  rig.append(entries_of(1, 2));
  rig.log->flush();
  rig.append(entries_of(1, 3));
  rig.log->flush();
  rig.disk.take_log();
  rig.settle();
  CHECK(rig.reports == Reports{{1, 1}, {6, 1}});
  CHECK(rig.disk.take_log().size() == 2);
}

TEST_CASE("a batch fills the file, and the rest goes to the next file") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 30, 40));
  CHECK(rig.log->stored() == 30);
  REQUIRE(!rig.restart());
  CHECK(rig.log->last() == 30);
  CHECK(rig.disk.has("raft.0000000003"));
}

TEST_CASE("an entry that is larger than a file gets a file of its own") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 1));
  rig.store(entries_of(1, 1, 20'000));
  rig.store(entries_of(1, 1));
  CHECK(rig.log->stored() == 3);
  REQUIRE(!rig.restart());
  CHECK(rig.log->at(2).data.size() == 20'000);
  CHECK(rig.log->last() == 3);
}

TEST_CASE("entries are replaced from an index") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 5));
  rig.append(3, entries_of(2, 1));
  CHECK(rig.log->stored() == 2);
  rig.settle();
  CHECK(rig.reports == Reports{{5, 1}, {3, 2}});
  REQUIRE(!rig.restart());
  CHECK(rig.terms() == "1:1 2:1 3:2");

  SUBCASE("by no entries") {
    rig.append(2, {});
    rig.settle();
    CHECK(rig.log->stored() == 1);
    REQUIRE(!rig.restart());
    CHECK(rig.terms() == "1:1");
  }
  SUBCASE("from the first entry") {
    rig.append(1, entries_of(3, 2));
    rig.settle();
    REQUIRE(!rig.restart());
    CHECK(rig.terms() == "1:3 2:3");
  }
}

TEST_CASE("entries replaced while they are written are not reported as stored") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.settle();
  rig.append(entries_of(1, 4));
  rig.log->flush();

  SUBCASE("some entries") {
    rig.append(3, entries_of(2, 1));
    rig.disk.run_all();
    CHECK(rig.reports == Reports{{2, 1}});
    rig.settle();
    CHECK(rig.reports == Reports{{2, 1}, {3, 2}});
  }
  SUBCASE("all entries") {
    rig.append(1, entries_of(2, 1));
    rig.disk.run_all();
    CHECK(rig.reports.empty());
    rig.settle();
    CHECK(rig.reports == Reports{{1, 2}});
  }
  SUBCASE("by no entries") {
    rig.append(2, {});
    rig.disk.run_all();
    rig.settle();
    CHECK(rig.reports == Reports{{1, 1}});
    REQUIRE(!rig.restart());
    CHECK(rig.terms() == "1:1");
  }
}

TEST_CASE("a file whose entries are not needed is removed") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  for (int i = 0; i < 6; ++i) rig.store(entries_of(1, 10, 40));
  const std::uint64_t bytes = rig.log->file_bytes();
  CHECK(rig.disk.has("raft.0000000001"));
  rig.log->cut(41);
  CHECK(rig.log->first() == 41);
  rig.settle();
  CHECK(!rig.disk.has("raft.0000000001"));
  CHECK(rig.log->file_bytes() < bytes);

  bool reused = false;
  SUBCASE("or reused under a new number, if spare files are missing") {
    rig.disk.set_capacity(rig.disk.total_bytes());
    reused = true;
  }
  SUBCASE("") {}
  for (int i = 0; i < 40; ++i) {
    rig.store(entries_of(2, 10, 40));
    rig.log->cut(rig.log->last() - 15);
    rig.settle();
    CHECK(rig.log->stored() == rig.log->last());
  }
  CHECK(rig.log->file_bytes() < bytes);
  CHECK(rig.log->file_bytes() == rig.disk.total_bytes());
  CHECK((rig.disk.count(Operation::reuse) > 10) == reused);
  const Index first = rig.log->first();
  REQUIRE(!rig.restart());
  CHECK(rig.log->first() <= first);
  CHECK(rig.log->last() == 460);
}

TEST_CASE("cut() keeps entries that are not stored") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 3));
  rig.append(entries_of(1, 2));
  rig.log->cut(100);
  CHECK(rig.log->first() == 4);
  rig.settle();
  rig.log->cut(100);
  CHECK(rig.log->first() == 6);
  CHECK(rig.log->last() == 5);
  CHECK(rig.log->bytes() == 0);
  rig.log->cut(2);
  CHECK(rig.log->first() == 6);
  rig.store(entries_of(1, 1));
  CHECK(rig.log->last() == 6);
}

TEST_CASE("reset() empties the log and moves it to another index") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  for (int i = 0; i < 3; ++i) rig.store(entries_of(1, 10, 40));
  REQUIRE(rig.log->reset(1000).ok());
  CHECK(rig.log->first() == 1001);
  CHECK(rig.log->last() == 1000);
  CHECK(rig.log->stored() == 1000);
  CHECK(rig.log->bytes() == 0);

  SUBCASE("durably") {
    REQUIRE(!rig.restart());
    CHECK(rig.log->first() == 1001);
    CHECK(rig.log->last() == 1000);
    rig.settle();
    CHECK(!rig.disk.has("raft.0000000001"));
  }
  SUBCASE("to a lower index, too") {
    REQUIRE(rig.log->reset(7).ok());
    rig.store(entries_of(4, 1));
    REQUIRE(!rig.restart());
    CHECK(rig.terms() == "8:4");
  }
  rig.store(entries_of(5, 20, 40));
  CHECK(rig.failure == std::nullopt);
  const Index last = rig.log->last();
  REQUIRE(!rig.restart());
  CHECK(rig.log->last() == last);
  CHECK(rig.log->term_of(last) == 5);
  rig.settle();
  CHECK(rig.log->file_bytes() == rig.disk.total_bytes());
}

TEST_CASE("on a full disk entries wait for space, and are stored when it is available") {
  RaftLogRig rig;
  rig.disk.set_capacity(3 * 1024);
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 8, 40));
  CHECK(!rig.full);
  CHECK(rig.log->has_room(1));
  rig.store(entries_of(1, 10, 40));
  CHECK(rig.full);
  CHECK(!rig.log->has_room(1));
  CHECK(rig.log->stored() == 18);  // the files reserved for this
  for (int i = 0; i < 10; ++i) rig.store(entries_of(1, 5, 40));
  CHECK(rig.log->last() == 68);
  CHECK(rig.log->stored() < 68);
  CHECK(rig.log->idle());
  CHECK(rig.log->next_deadline() == rig.time + 1s);

  SUBCASE("because the disk has more") {
    rig.disk.set_capacity(1 << 20);
  }
  SUBCASE("because the log was cut") {
    rig.log->cut(rig.log->stored());
  }
  rig.time += 1s;
  // While the next attempt is under way, nothing else is due.
  rig.log->flush();
  CHECK(rig.log->next_deadline() == kNever);
  for (int i = 0; i < 20; ++i) {
    rig.settle();
    rig.log->cut(rig.log->stored());
    rig.time += 1s;
  }
  CHECK(rig.log->stored() == 68);
  CHECK(!rig.full);
  CHECK(rig.log->has_room(1));
  CHECK(rig.log->next_deadline() == kNever);
  REQUIRE(!rig.restart());
  CHECK(rig.log->last() == 68);
}

TEST_CASE("a write for which the disk has no room is repeated unchanged") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.store(entries_of(1, 2));
  rig.disk.fail_after(Operation::write, 0, kNoSpace, "no space", 2);
  rig.store(entries_of(1, 2));
  CHECK(rig.log->stored() == 2);
  CHECK(rig.full);
  CHECK(!rig.log->has_room(1));
  rig.append(4, entries_of(2, 3));
  rig.time += 1s;
  rig.settle();
  CHECK(rig.log->stored() == 2);
  CHECK(rig.log->reset(7).error().kind == Error::Kind::no_space);
  rig.time += 1s;
  rig.settle();
  CHECK(rig.log->stored() == 6);
  CHECK(!rig.full);
  REQUIRE(!rig.restart());
  CHECK(rig.terms() == "1:1 2:1 3:1 4:2 5:2 6:2");
}

TEST_CASE("after a failure no entry is reported as stored") {
  for (const Operation operation : {Operation::write, Operation::sync, Operation::create}) {
    RaftLogRig rig;
    REQUIRE(!rig.open());
    rig.settle();
    rig.disk.fail_after(operation, 0);
    for (int i = 0; i < 4 && !rig.failure; ++i) rig.store(entries_of(1, 8, 40));
    REQUIRE(rig.failure);
    CHECK(rig.failure->find("Input/output error") != std::string::npos);
    CHECK(rig.log->failed());
    const auto reports = rig.reports;
    rig.time += 10s;
    rig.settle();
    CHECK(rig.reports == reports);
    CHECK(rig.closed());
  }
}

TEST_CASE("close() stores all appended entries and seals the log") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.append(entries_of(1, 30, 40));
  CHECK(rig.closed());
  CHECK(rig.log->stored() == 30);
  rig.restart();
  CHECK(rig.log->last() == 30);
  rig.disk.take_log();
  CHECK(rig.closed());  // already sealed
  CHECK(rig.disk.take_log().empty());
}

TEST_CASE("close() does not wait for space") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.settle();
  SUBCASE("of a write") {
    rig.disk.fail_after(Operation::write, 0, kNoSpace, "no space", 100);
  }
  SUBCASE("of a file") {
    rig.disk.set_capacity(0);
  }
  rig.append(entries_of(1, 100, 40));
  rig.settle();
  CHECK(rig.closed());
  CHECK(!rig.restart());
}

TEST_CASE("the files of another cluster are refused") {
  RaftLogRig rig;
  REQUIRE(!rig.open());
  rig.settle();
  rig.options.cluster = 7;
  const auto error = rig.restart();
  REQUIRE(error);
  CHECK(error->message == "raft.0000000001 belongs to another cluster");
}

TEST_CASE("unfinished files are removed, and files with other names are kept") {
  RaftLogRig rig;
  rig.disk.place("raft.0000000001.new", "x");
  rig.disk.place("state.0000000001", "y");
  rig.disk.place("raft.1", "z");
  REQUIRE(!rig.open());
  CHECK(rig.disk.names() == std::vector<std::string>{"raft.1", "state.0000000001"});
}

}  // namespace tubed::cluster
