#include "loop/file_watch.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

namespace {

namespace fs = std::filesystem;

using loop::FileWatch;
using loop::Loop;

void put(const std::string& path, std::string_view text) {
  std::ofstream(path) << text;
}

// Replaces a symbolic link as the kubelet does.
void swap_link(const std::string& link, const std::string& target) {
  fs::create_symlink(target, link + "_tmp");
  fs::rename(link + "_tmp", link);
}

// Watches files in a temporary directory, and counts the changes.
struct Watched {
  std::string path(const std::string& name) const { return root + '/' + name; }
  // Waits for a change after the last one that was counted.
  bool changes() {
    return run_until(loop, [&] { return count > seen; }) && (seen = count, true);
  }
  // Watches, and waits for the first call.
  void watch(std::vector<std::string> files) {
    watch_.set(std::move(files));
    REQUIRE(changes());
  }

  Directory directory;
  std::string root = fs::canonical(directory.file("")).string();
  Loop loop;
  int count = 0;
  int seen = 0;
  std::vector<std::string> failures;
  FileWatch watch_{loop,
                   {.changed = [this] { ++count; },
                    .failed =
                        [this](const std::string& path, std::string_view reason) {
                          failures.push_back(path + ": " + std::string(reason));
                        }}};
};

}  // namespace

TEST_CASE("a file that is written, replaced or removed has changed") {
  Watched files;
  put(files.path("a"), "1");
  files.watch({files.path("a")});
  put(files.path("a"), "2");
  CHECK(files.changes());
  put(files.path("b"), "3");
  fs::rename(files.path("b"), files.path("a"));
  CHECK(files.changes());
  fs::remove(files.path("a"));
  CHECK(files.changes());
  put(files.path("a"), "4");
  CHECK(files.changes());
  CHECK(files.watch_.directories() == 1);
  CHECK(files.failures.empty());
}

TEST_CASE("other files in the directory are no change") {
  Watched files;
  put(files.path("a"), "1");
  files.watch({files.path("a")});
  put(files.path("other"), "1");
  fs::remove(files.path("other"));
  put(files.path("a"), "2");
  REQUIRE(files.changes());
  // The events are in order: those of the other file would have been counted before.
  CHECK(files.count == 2);
}

TEST_CASE("a burst of changes is one change") {
  Watched files;
  put(files.path("a"), "1");
  files.watch({files.path("a")});
  for (int i = 0; i < 100; ++i) put(files.path("a"), std::to_string(i));
  REQUIRE(files.changes());
  put(files.path("a"), "later");
  REQUIRE(files.changes());
  CHECK(files.count == 3);
}

TEST_CASE("the links of a Kubernetes volume are swapped, and the old directory is let go") {
  Watched files;
  const auto version = [&](const std::string& name) {
    fs::create_directory(files.path(name));
    put(files.path(name + "/tls.crt"), name);
  };
  version("..1");
  fs::create_symlink("..1", files.path("..data"));
  fs::create_symlink("..data/tls.crt", files.path("tls.crt"));
  files.watch({files.path("tls.crt")});
  CHECK(files.watch_.directories() == 2);
  for (const char* name : {"..2", "..3", "..4"}) {
    version(name);
    const std::string old = fs::read_symlink(files.path("..data")).string();
    swap_link(files.path("..data"), name);
    fs::remove_all(files.path(old));
    CHECK(files.changes());
    CHECK(files.watch_.directories() == 2);
  }
  put(files.path("..4/tls.crt"), "written");
  CHECK(files.changes());
}

TEST_CASE("a directory that is missing, made, removed and made again") {
  Watched files;
  const std::string file = files.path("x/y/a");
  files.watch({file});
  CHECK(files.watch_.directories() == 1);
  for (int i = 0; i < 3; ++i) {
    fs::create_directories(files.path("x/y"));
    put(file, "1");
    CHECK(files.changes());
    put(file, "3");
    CHECK(files.changes());
    fs::remove_all(files.path("x"));
    CHECK(files.changes());
    CHECK(files.watch_.directories() == 1);
  }
}

TEST_CASE("a directory that another one replaces at once is watched") {
  Watched files;
  const auto make = [&](const std::string& name) {
    fs::create_directory(files.path(name));
    put(files.path(name + "/a"), name);
  };
  make("x");
  files.watch({files.path("x/a")});
  make("new");
  fs::rename(files.path("x"), files.path("old"));
  fs::rename(files.path("new"), files.path("x"));
  CHECK(files.changes());
  put(files.path("x/a"), "again");
  CHECK(files.changes());
  // Its number may be that of the directory before.
  fs::remove_all(files.path("x"));
  make("x");
  CHECK(files.changes());
  put(files.path("x/a"), "again");
  CHECK(files.changes());
  CHECK(files.watch_.directories() == 1);
}

TEST_CASE("other files to watch replace the ones before, and none ends the watch") {
  Watched files;
  fs::create_directory(files.path("x"));
  put(files.path("a"), "1");
  put(files.path("x/b"), "1");
  files.watch({files.path("a"), files.path("x/b")});
  CHECK(files.watch_.directories() == 2);
  files.watch({files.path("x/b")});
  CHECK(files.watch_.directories() == 1);
  const int before = files.count;
  put(files.path("a"), "2");
  put(files.path("x/b"), "2");
  REQUIRE(files.changes());
  CHECK(files.count == before + 1);
  put(files.path("x/b"), "3");
  files.watch_.set({});
  CHECK(files.watch_.directories() == 0);
  const int after = files.count;
  run_ticks(files.loop, 100);
  CHECK(files.count == after);
}

TEST_CASE("two watches of one directory see its changes and its end") {
  Watched files;
  fs::create_directory(files.path("x"));
  put(files.path("x/a"), "1");
  int other = 0;
  FileWatch second(files.loop, {.changed = [&] { ++other; }, .failed = [](const auto&, auto) {}});
  second.set({files.path("x/a")});
  files.watch({files.path("x/a")});
  REQUIRE(run_until(files.loop, [&] { return other == 1; }));
  fs::remove_all(files.path("x"));
  fs::create_directory(files.path("x"));
  put(files.path("x/a"), "2");
  CHECK(files.changes());
  REQUIRE(run_until(files.loop, [&] { return other > 1; }));
  const int before = other;
  put(files.path("x/a"), "3");
  CHECK(files.changes());
  CHECK(run_until(files.loop, [&] { return other > before; }));
}

TEST_CASE("without descriptors the failure is reported once after each set()") {
  Watched files;
  put(files.path("a"), "1");
  {
    const NoDescriptors none;
    files.watch({files.path("a"), files.path("x/b")});
    CHECK(files.failures == std::vector<std::string>{files.root + ": Too many open files"});
    CHECK(files.watch_.directories() == 0);
  }
  files.watch({files.path("a")});
  CHECK(files.watch_.directories() == 1);
  put(files.path("a"), "2");
  CHECK(files.changes());
  CHECK(files.failures.size() == 1);
}

}  // namespace tubed::loop_test
