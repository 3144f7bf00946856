#include "disk/file_storage.h"

#include <array>
#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/disk/storage_place.h"

namespace tubed::disk_test {

using disk::FileStorage;
using journal::FileId;
using journal::Outcome;
using loop::Loop;

namespace {

// A forked child that returns a text. With `stays` it then lives until this object is destroyed.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work, bool stays = false) {
    std::array<int, 2> ends;
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      const std::string text = work();
      if (::write(ends[1], text.data(), text.size()) < 0) ::_exit(1);
      ::close(ends[1]);
      while (stays) ::pause();
      ::_exit(0);
    }
    ::close(ends[1]);
    std::array<char, 4096> buffer;
    const ssize_t bytes = ::read(ends[0], buffer.data(), buffer.size());
    ::close(ends[0]);
    REQUIRE(bytes >= 0);
    text_.assign(buffer.data(), static_cast<std::size_t>(bytes));
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& text() const { return text_; }

 private:
  pid_t pid_ = -1;
  std::string text_;
};

constexpr uid_t kNobody = 65534;

// Returns the error of opening the directory as a user that is neither root nor its owner.
std::string failure_as_nobody(const std::string& path, FileStorage::Mode mode) {
  const Child child([&]() -> std::string {
    if (::geteuid() == 0 && ::seteuid(kNobody) != 0) return "no such user";
    Loop loop;
    const auto opened = FileStorage::open(loop, path, mode);
    return opened.ok() ? "opened" : opened.error().message;
  });
  return child.text();
}

}  // namespace

// --- Opening

TEST_CASE("the error of a missing directory, or of a file in its place, names the path") {
  const Directory directory;
  Loop loop;
  const std::string missing = directory.file("missing");
  const std::string file = directory.file("file");
  put_file(file, "precious");
  for (const auto mode : {kOwner, kReadOnly}) {
    CHECK(failure_of(FileStorage::open(loop, missing, mode)) ==
          "journal directory " + missing + ": no such directory");
    CHECK(failure_of(FileStorage::open(loop, file, mode)) ==
          "journal directory " + file + ": not a directory");
    CHECK(failure_of(FileStorage::open(loop, file + "/below", mode)) ==
          "journal directory " + file + "/below: not a directory");
  }
  CHECK(contents_of(file) == "precious");
}

TEST_CASE("the error of a directory without permissions names the path") {
  const Directory directory;
  const std::string path = directory.file("journal");
  REQUIRE(::mkdir(path.c_str(), 0755) == 0);
  REQUIRE(::chmod(directory.file(".").c_str(), 0755) == 0);
  REQUIRE(::chmod(path.c_str(), 0555) == 0);
  CHECK(failure_as_nobody(path, kOwner) == "journal directory " + path + ": permission denied");
  CHECK(failure_as_nobody(path, kReadOnly) == "opened");
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  CHECK(failure_as_nobody(path, kOwner) == "journal directory " + path + ": permission denied");
  CHECK(failure_as_nobody(path, kReadOnly) == "journal directory " + path + ": permission denied");
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

TEST_CASE("the error of a directory in which no lock file can be created names the path") {
  Loop loop;
  CHECK(
      failure_of(FileStorage::open(loop, "/proc", kOwner)).starts_with("journal directory /proc"));
}

TEST_CASE("a new directory is created, and an empty directory is used") {
  const Directory directory;
  Loop loop;
  const mode_t before = ::umask(022);
  const auto made = FileStorage::open(loop, directory.file("new/"), kCreate);
  ::umask(before);
  REQUIRE(made.ok());
  CHECK(mode_of(directory.file("new")) == 0750);
  CHECK(made.value()->store("file", "x").ok());
  CHECK(contents_of(directory.file("new/file")) == "x");
  const std::string empty = directory.file("empty");
  REQUIRE(std::filesystem::create_directory(empty));
  CHECK(FileStorage::open(loop, empty, kCreate).ok());
}

TEST_CASE("a new directory must be empty or missing, and its parent must exist") {
  const Directory directory;
  Loop loop;
  const std::string full = directory.file("full");
  REQUIRE(std::filesystem::create_directories(full + "/folder"));
  CHECK(failure_of(FileStorage::open(loop, full, kCreate)) ==
        "journal directory " + full + ": not empty");
  CHECK_FALSE(std::filesystem::exists(full + "/lock"));
  const std::string deep = directory.file("none/new");
  CHECK(failure_of(FileStorage::open(loop, deep, kCreate)) ==
        "journal directory " + deep + " cannot be made: No such file or directory");
  const std::string file = directory.file("file");
  put_file(file, "precious");
  CHECK(failure_of(FileStorage::open(loop, file, kCreate)) ==
        "journal directory " + file + ": not a directory");
}

// --- The lock

TEST_CASE("a directory in use is refused until its process ends, and the error names the process") {
  Place place;
  place.storage.reset();
  std::optional<Child> other;
  other.emplace(
      [&]() -> std::string {
        Loop loop;
        static auto opened = FileStorage::open(loop, place.path, kOwner);
        return opened.ok() ? "locked" : opened.error().message;
      },
      true);
  REQUIRE(other->text() == "locked");
  CHECK(failure_of(FileStorage::open(place.loop, place.path, kOwner)) ==
        fmt::format("journal directory {} is in use by process {}", place.path, other->pid()));
  CHECK(FileStorage::open(place.loop, place.path, kReadOnly).ok());
  other.reset();
  place.open();
}

TEST_CASE("the lock excludes beanstalkd, until the storage is destroyed") {
  Place place;
  CHECK(mode_of(place.file("lock")) == 0600);
  const auto try_lock = [&]() -> std::string {
    const int file = ::open(place.file("lock").c_str(), O_WRONLY | O_CLOEXEC);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file, F_SETLK, &whole) == 0 ? "locked" : "refused";
  };
  CHECK(Child(try_lock).text() == "refused");
  place.names();
  place.storage->store("file", "x").ok();
  CHECK(Child(try_lock).text() == "refused");
  place.storage.reset();
  CHECK(Child(try_lock).text() == "locked");
}

TEST_CASE("a reader takes no lock and creates no file") {
  Place place(kReadOnly);
  put_file(place.file("journal.1"), "contents");
  CHECK(place.names() == std::vector<std::string>{"journal.1"});
  const auto contents = place.storage->read(place.opened("journal.1"));
  REQUIRE(contents.ok());
  CHECK(contents.value() == "contents");
  CHECK_FALSE(std::filesystem::exists(place.file("lock")));
}

// --- Blocking

TEST_CASE("the list has the regular files and their sizes, without the lock") {
  Place place;
  CHECK(place.names().empty());
  put_file(place.file("one"), "12345");
  put_file(place.file("empty"), "");
  REQUIRE(std::filesystem::create_directory(place.file("folder")));
  std::filesystem::create_symlink("one", place.file("link"));
  for (int twice = 0; twice < 2; ++twice) {
    CHECK(place.names() == std::vector<std::string>{"empty", "one"});
  }
  const auto files = place.storage->list();
  for (const auto& info : files.value()) CHECK(info.bytes == (info.name == "one" ? 5 : 0));
}

TEST_CASE("a missing file cannot be opened or removed") {
  Place place;
  CHECK(failure_of(place.storage->open("none")) ==
        "opening of " + place.file("none") + ": No such file or directory");
  const std::string removal = "removal of " + place.file("none") + ": No such file or directory";
  CHECK(failure_of(place.storage->remove_now("none")) == removal);
  const Outcome outcome =
      place.wait([&](const journal::Done& done) { place.storage->remove("none", done); });
  CHECK(outcome.kind == Outcome::Kind::failed);
  CHECK(outcome.reason == removal);
}

TEST_CASE("stored contents are read back, whatever their bytes") {
  Place place;
  std::string contents(300'000, '\0');
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * i >> 8);
  REQUIRE(place.storage->store("file", contents).ok());
  CHECK(mode_of(place.file("file")) == 0600);
  CHECK(place.storage->read(place.opened("file")).value() == contents);
  REQUIRE(place.storage->store("nothing", "").ok());
  CHECK(place.storage->read(place.opened("nothing")).value().empty());
  CHECK(place.names() == std::vector<std::string>{"file", "nothing"});
}

TEST_CASE("a store replaces only an unfinished file that a crash has left") {
  Place place;
  REQUIRE(place.storage->store("file", "old").ok());
  CHECK(failure_of(place.storage->store("file", "new")) ==
        fmt::format("renaming of {} to file: File exists", place.file("file.new")));
  CHECK(contents_of(place.file("file")) == "old");
  CHECK(place.names() == std::vector<std::string>{"file"});
  put_file(place.file("other.new"), "much longer than what comes");
  REQUIRE(place.storage->store("other", "short").ok());
  CHECK(contents_of(place.file("other")) == "short");
  CHECK(mode_of(place.file("other")) == 0600);
}

TEST_CASE("a file is truncated, extended and synced") {
  Place place;
  REQUIRE(place.storage->store("file", "0123456789").ok());
  const FileId id = place.opened("file");
  CHECK(place.storage->truncate(id, 4).ok());
  CHECK(place.storage->sync_now(id).ok());
  CHECK(place.storage->read(id).value() == "0123");
  CHECK(place.storage->truncate(id, 6).ok());
  CHECK(place.storage->read(id).value() == std::string("0123\0\0", 6));
}

TEST_CASE("a removed file does not exist") {
  Place place;
  for (const std::string name : {"one", "two"}) REQUIRE(place.storage->store(name, "x").ok());
  CHECK(place.storage->remove_now("one").ok());
  CHECK(place.wait([&](const journal::Done& done) { place.storage->remove("two", done); }).ok());
  CHECK(place.names().empty());
}

TEST_CASE("a file is moved to another name, and into a folder that the move creates") {
  Place place;
  for (const std::string name : {"one", "two", "three"}) {
    REQUIRE(place.storage->store(name, name).ok());
  }
  CHECK(place.storage->move("one", "uno").ok());
  CHECK(place.storage->move("two", "imported/binlog.1").ok());
  CHECK(place.storage->move("three", "imported/binlog.2").ok());
  CHECK(place.names() == std::vector<std::string>{"uno"});
  CHECK(contents_of(place.file("uno")) == "one");
  CHECK(contents_of(place.file("imported/binlog.1")) == "two");
  CHECK(contents_of(place.file("imported/binlog.2")) == "three");
}

TEST_CASE("a move replaces no file, and fails if the target is not in a folder") {
  Place place;
  for (const std::string name : {"one", "two"}) REQUIRE(place.storage->store(name, name).ok());
  const std::string operation = "move of " + place.file("one") + " to ";
  CHECK(failure_of(place.storage->move("one", "two")) ==
        operation + place.file("two: File exists"));
  REQUIRE(std::filesystem::create_directory(place.file("imported")));
  put_file(place.file("imported/one"), "precious");
  CHECK(failure_of(place.storage->move("one", "imported/one")) ==
        operation + place.file("imported/one: File exists"));
  CHECK(contents_of(place.file("imported/one")) == "precious");
  CHECK(failure_of(place.storage->move("none", "imported/none"))
            .ends_with("No such file or directory"));
  CHECK(failure_of(place.storage->move("one", "two/one")) ==
        "opening of the directory " + place.file("two: Not a directory"));
  CHECK(place.names() == std::vector<std::string>{"one", "two"});
}

}  // namespace tubed::disk_test
