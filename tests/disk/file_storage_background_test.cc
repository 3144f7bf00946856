#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/disk/storage_place.h"

namespace tubed::disk_test {

using journal::FileId;
using journal::Outcome;
using journal::Sync;
using loop_test::NoDescriptors;

TEST_CASE("a new file begins with its head, reads as zeros after it, and is allocated on disk") {
  Place place;
  FileId id = 0;
  REQUIRE(place.create("file", "head", 1 << 20, &id).ok());
  CHECK(contents_of(place.file("file")) == "head" + std::string((1 << 20) - 4, '\0'));
  CHECK(allocated_bytes_of(place.file("file")) >= 1 << 20);
  CHECK(mode_of(place.file("file")) == 0600);
  CHECK(place.names() == std::vector<std::string>{"file"});
  CHECK(place.write(id, 4, {"body"}).ok());
  CHECK(place.storage->read(id).value().starts_with("headbody"));
}

TEST_CASE("a new file replaces no file, and a failed creation leaves nothing") {
  Place place;
  REQUIRE(place.storage->store("file", "old").ok());
  FileId id = 77;
  const Outcome outcome = place.create("file", "head", 100, &id);
  CHECK(outcome.kind == Outcome::Kind::failed);
  CHECK(outcome.reason ==
        fmt::format("renaming of {} to file: File exists", place.file("file.new")));
  CHECK(id == 0);
  CHECK(contents_of(place.file("file")) == "old");
  CHECK(place.names() == std::vector<std::string>{"file"});
}

TEST_CASE("a file never gets the id of another") {
  Place place;
  FileId first = 0;
  FileId second = 0;
  REQUIRE(place.create("file", "x", 1, &first).ok());
  place.storage->close(first);
  REQUIRE(place.create("other", "x", 1, &second).ok());
  CHECK(first != second);
  CHECK(place.opened("file") > second);
}

TEST_CASE("an allocated part reads as zeros and is allocated on disk") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  REQUIRE(place.allocate(id, 4, 1 << 20).ok());
  CHECK(contents_of(place.file("file")) == "0123" + std::string((1 << 20) - 4, '\0'));
  CHECK(allocated_bytes_of(place.file("file")) >= 1 << 20);
  CHECK(place.allocate(id, 1 << 20, 1 << 20).ok());
}

TEST_CASE("a write stores its pieces in order, even more than one system call takes") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  std::string text;
  for (int i = 0; i < 3 * IOV_MAX + 7; ++i) text += fmt::format("{},", i);
  std::vector<std::string_view> pieces;
  const std::string_view whole = text;
  std::size_t at = 0;
  while (at < whole.size()) {  // a number, its comma, and sometimes an empty piece
    const std::size_t comma = whole.find(',', at);
    pieces.push_back(whole.substr(at, comma - at));
    pieces.push_back(whole.substr(comma, 1));
    if (at % 5 == 0) pieces.push_back({});
    at = comma + 1;
  }
  REQUIRE(pieces.size() > 6 * IOV_MAX);
  for (const Sync sync : {Sync::no, Sync::yes}) {
    CHECK(place.storage->truncate(id, 4).ok());
    CHECK(place.write(id, 2, pieces, sync).ok());
    CHECK(contents_of(place.file("file")) == "01" + text);
  }
  CHECK(place.write(id, 0, {}).ok());
  CHECK(place.write(id, 0, std::vector<std::string_view>(2 * IOV_MAX)).ok());
  CHECK(contents_of(place.file("file")) == "01" + text);
  CHECK(place.wait([&](const journal::Done& done) { place.storage->sync(id, done); }).ok());
}

TEST_CASE("a trimmed file has the requested length") {
  Place place;
  FileId id = 0;
  REQUIRE(place.create("file", "head", 1 << 20, &id).ok());
  CHECK(place.wait([&](const journal::Done& done) { place.storage->trim(id, 8, done); }).ok());
  CHECK(contents_of(place.file("file")) == std::string("head\0\0\0\0", 8));
  CHECK(allocated_bytes_of(place.file("file")) < 1 << 20);
}

TEST_CASE("a reused file has a new name, the same blocks and none of its old contents") {
  Place place;
  const std::string old(10'000, 'o');
  for (const std::size_t bytes : {10'000U, 6'000U}) {
    REQUIRE(place.storage->store("old", old).ok());
    put_file(place.file("new.new"), "a crash's");
    const auto inode = status_of(place.file("old")).st_ino;
    FileId id = 0;
    const Outcome outcome = place.wait([&](const journal::Done& done) {
      place.storage->reuse("old", "new", "head", bytes,
                           [&id, done](const Outcome& reused, FileId file) {
                             id = file;
                             done(reused);
                           });
    });
    REQUIRE(outcome.ok());
    CHECK(place.names() == std::vector<std::string>{"new"});
    CHECK(contents_of(place.file("new")) == "head" + std::string(bytes - 4, '\0'));
    CHECK(status_of(place.file("new")).st_ino == inode);
    CHECK(place.write(id, 4, {"text"}).ok());
    CHECK(contents_of(place.file("new")).starts_with("headtext"));
    place.storage->close(id);
    REQUIRE(place.storage->remove_now("new").ok());
  }
  const Outcome none = place.wait([&](const journal::Done& done) {
    place.storage->reuse("none", "new", "head", 8,
                         [done](const Outcome& reused, FileId) { done(reused); });
  });
  CHECK(none.kind == Outcome::Kind::failed);
  CHECK(none.reason == "opening of " + place.file("none") + ": No such file or directory");
  CHECK(place.names().empty());
}

TEST_CASE("operations run in parallel, and each completes once") {
  Place place;
  constexpr std::size_t kFiles = 5;
  constexpr std::size_t kWrites = 40;
  std::vector<FileId> ids(kFiles);
  for (std::size_t i = 0; i < kFiles; ++i) {
    REQUIRE(place.create(fmt::format("file{}", i), "", kWrites, &ids[i]).ok());
  }
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN";
  std::vector<int> completed(kFiles * kWrites);
  for (std::size_t i = 0; i < completed.size(); ++i) {
    const std::size_t at = i / kFiles;
    place.storage->write(ids[i % kFiles], at, {std::string_view(letters).substr(at, 1)},
                         i % 7 == 0 ? Sync::yes : Sync::no,
                         [&completed, i](const Outcome& outcome) {
                           CHECK(outcome.ok());
                           ++completed[i];
                         });
  }
  place.storage->store("blocking", "beside").ok();
  REQUIRE(run_until(place.loop, [&] { return !place.storage->busy(); }));
  CHECK(completed == std::vector<int>(completed.size(), 1));
  for (std::size_t i = 0; i < kFiles; ++i) {
    CHECK(contents_of(place.file(fmt::format("file{}", i))) == letters);
  }
}

TEST_CASE("a completion may close the file, start an operation and destroy the storage") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  bool gone = false;
  place.storage->write(id, 0, {"abcd"}, Sync::yes, [&](const Outcome&) {
    place.storage->close(id);
    place.storage->remove("file", [&](const Outcome& outcome) {
      CHECK(outcome.ok());
      CHECK_FALSE(place.storage->busy());
      place.storage.reset();
      gone = true;
    });
  });
  REQUIRE(run_until(place.loop, [&] { return gone; }));
  place.open();
  CHECK(place.names().empty());
}

// --- No space

TEST_CASE("a write beyond the file size limit is no_space, and can be repeated") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  {
    const FileSizeLimit limit(8);
    const Outcome outcome = place.write(id, 4, {"ab", "cdef"});
    CHECK(outcome.kind == Outcome::Kind::no_space);
    CHECK(outcome.reason == "write of " + place.file("file at 8: File too large"));
  }
  CHECK(place.write(id, 4, {"ab", "cdef"}).ok());
  CHECK(contents_of(place.file("file")) == "0123abcdef");
}

TEST_CASE("an allocation without space leaves the file unchanged") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  {
    const FileSizeLimit limit(4096);
    const Outcome outcome = place.allocate(id, 4, 1 << 20);
    CHECK(outcome.kind == Outcome::Kind::no_space);
    CHECK(outcome.reason ==
          fmt::format("allocation of {} from 4 to 1048576: File too large", place.file("file")));
  }
  CHECK(contents_of(place.file("file")) == "0123");
  CHECK(place.allocate(id, 4, 1 << 20).ok());
}

TEST_CASE("a new file without space for its head or its length does not exist") {
  Place place;
  for (const rlim_t bytes : {2U, 4096U}) {
    const FileSizeLimit limit(bytes);
    CHECK(place.create("file", "head", 1 << 20).kind == Outcome::Kind::no_space);
    CHECK(place.names().empty());
    CHECK_FALSE(place.storage->store("file", std::string(8192, 'x')).ok());
    CHECK(place.names().empty());
  }
  CHECK(place.create("file", "head", 1 << 20).ok());
}

TEST_CASE("a new file without a descriptor is no_space, and can be repeated") {
  Place place;
  {
    NoDescriptors none;
    const Outcome outcome = place.create("file", "head", 100);
    CHECK(outcome.kind == Outcome::Kind::no_space);
    CHECK(outcome.reason ==
          "creation of " + place.file("file.new") +
              ": no descriptor is free, although the disk may have room: raise the limit of open "
              "files (LimitNOFILE=, ulimit -n) (Too many open files)");
  }
  CHECK(place.create("file", "head", 100).ok());
}

TEST_CASE("a file that cannot grow to the length of its truncation is no_space") {
  Place place;
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  const FileSizeLimit limit(8);
  const Outcome outcome =
      place.wait([&](const journal::Done& done) { place.storage->trim(id, 16, done); });
  CHECK(outcome.kind == Outcome::Kind::no_space);
  CHECK(outcome.reason == "truncation of " + place.file("file to 16: File too large"));
  const auto truncated = place.storage->truncate(id, 16);
  REQUIRE_FALSE(truncated.ok());
  CHECK(truncated.error().kind == Error::Kind::no_space);
}

TEST_CASE("a reuse without space leaves no file, and its removal can be completed") {
  Place place;
  REQUIRE(place.storage->store("old", std::string(10'000, 'o')).ok());
  {
    const FileSizeLimit limit(4096);
    const Outcome outcome = place.wait([&](const journal::Done& done) {
      place.storage->reuse("old", "new", "head", 10'000,
                           [done](const Outcome& reused, FileId) { done(reused); });
    });
    CHECK(outcome.kind == Outcome::Kind::no_space);
    CHECK(outcome.reason == "write of " + place.file("new.new at 4096: File too large"));
  }
  CHECK(place.names().empty());
  const auto remove = [&](const journal::Done& done) { place.storage->remove("old", done); };
  CHECK(place.wait(remove).ok());
  CHECK(place.wait(remove).kind == Outcome::Kind::failed);
}

// --- Other failures

TEST_CASE("any other write error names the operation, the file, the offset and the reason") {
  Place place;
  REQUIRE(std::filesystem::create_directory(place.file("folder")));
  CHECK(failure_of(place.storage->open("folder")) ==
        "opening of " + place.file("folder: Is a directory"));
  REQUIRE(place.storage->store("file", "0123").ok());
  const FileId id = place.opened("file");
  // Beyond the largest size of any file.
  const Outcome outcome = place.write(id, INT64_MAX - 1, {"abcd"});
  CHECK_FALSE(outcome.ok());
  CHECK(outcome.reason.starts_with(
      fmt::format("write of {} at {}: ", place.file("file"), INT64_MAX - 1)));
}

TEST_CASE("a removed directory refuses new files") {
  Place place;
  std::filesystem::remove_all(place.path);
  const Outcome outcome = place.create("file", "head", 100);
  CHECK(outcome.kind == Outcome::Kind::failed);
  CHECK(outcome.reason == "creation of " + place.file("file.new") + ": No such file or directory");
}

// --- Without fallocate

namespace {

// While it exists, fallocate() fails as on a file system without this operation.
class NoFallocate {
 public:
  NoFallocate() {
    refusals = 0;
    exists = true;
  }
  ~NoFallocate() { exists = false; }
  NoFallocate(const NoFallocate&) = delete;
  NoFallocate& operator=(const NoFallocate&) = delete;

  static inline std::atomic<bool> exists = false;
  static inline std::atomic<int> refusals = 0;
};

}  // namespace

}  // namespace tubed::disk_test

// Replaces glibc's function in this program.
int fallocate(int file, int mode, off_t offset, off_t length) {
  using tubed::disk_test::NoFallocate;
  if (!NoFallocate::exists) {
    return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, length));
  }
  ++NoFallocate::refusals;
  errno = EOPNOTSUPP;
  return -1;
}

namespace tubed::disk_test {

TEST_CASE("on a file system without fallocate, zeros are written") {
  const NoFallocate without;
  Place place;
  constexpr std::size_t kBytes = (1 << 20) + 77;
  FileId id = 0;
  REQUIRE(place.create("file", "head", kBytes, &id).ok());
  CHECK(contents_of(place.file("file")) == "head" + std::string(kBytes - 4, '\0'));
  REQUIRE(place.allocate(id, kBytes, 2 * kBytes).ok());
  CHECK(contents_of(place.file("file")) == "head" + std::string(2 * kBytes - 4, '\0'));
  CHECK(allocated_bytes_of(place.file("file")) >= 2 * kBytes);
  const FileSizeLimit limit(3 * kBytes - 100);
  CHECK(place.allocate(id, 2 * kBytes, 3 * kBytes).kind == Outcome::Kind::no_space);
  CHECK(status_of(place.file("file")).st_size == 2 * kBytes);
  CHECK(place.create("other", "head", 3 * kBytes).kind == Outcome::Kind::no_space);
  CHECK(place.names() == std::vector<std::string>{"file"});
  CHECK(NoFallocate::refusals == 4);
}

}  // namespace tubed::disk_test
