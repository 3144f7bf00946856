#include "disk/directory_tree.h"

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::disk_test {

using disk::DirectoryTree;
using loop_test::Directory;

TEST_CASE("a file of a directory is replaced as a whole, and read up to a bound") {
  const Directory directory;
  DirectoryTree tree(directory.file(""));
  const auto none = tree.read("history", 10);
  REQUIRE(none);
  CHECK_FALSE(*none);
  for (const std::string contents : {"0123456789", "abc", ""}) {
    REQUIRE(tree.store("history", contents));
    const auto read = tree.read("history", 10);
    REQUIRE(read);
    CHECK(*read == contents);
  }
  REQUIRE(tree.store("history", "0123456789"));
  CHECK_FALSE(tree.read("history", 9));
  CHECK_FALSE(std::filesystem::exists(directory.file("history.new")));
  std::filesystem::create_directory(directory.file("folder"));
  CHECK_FALSE(tree.read("folder", 10));
  std::filesystem::create_symlink("history", directory.file("link"));
  CHECK_FALSE(tree.read("link", 10));
}

TEST_CASE("a file in the place of an unfinished one is not written to") {
  const Directory directory;
  DirectoryTree tree(directory.file(""));
  REQUIRE(tree.store("other", "kept"));
  SUBCASE("a hard link") {
    std::filesystem::create_hard_link(directory.file("other"), directory.file("history.new"));
  }
  SUBCASE("a symbolic link") {
    std::filesystem::create_symlink("other", directory.file("history.new"));
  }
  REQUIRE(tree.store("history", "new"));
  CHECK(*tree.read("other", 10) == "kept");
  CHECK(*tree.read("history", 10) == "new");
}

}  // namespace tubed::disk_test
