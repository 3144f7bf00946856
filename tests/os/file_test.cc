#include "os/file.h"

#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/stat.h>

namespace tubed::os {

TEST_CASE("a file is replaced as a whole and read back") {
  std::string directory = (std::filesystem::temp_directory_path() / "tubed-file-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const std::string path = directory + "/file";
  const std::string large(200'000, 'x');
  for (const std::string& contents : {std::string("one\n"), large, std::string()}) {
    REQUIRE(replace_file(path, contents));
    const auto read = read_file(path);
    REQUIRE(read);
    CHECK(*read == contents);
  }
  // No temporary file remains.
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
  CHECK(read_file(directory + "/none").error().message ==
        directory + "/none: No such file or directory");
  CHECK_FALSE(replace_file(directory + "/none/file", "x"));
  std::filesystem::remove_all(directory);
}

TEST_CASE("what is no regular file is not replaced") {
  std::string directory = (std::filesystem::temp_directory_path() / "tubed-file-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const std::string path = directory + "/file";
  const auto error = [&] {
    const auto replaced = replace_file(path, "x");
    return replaced.ok() ? "" : replaced.error().message;
  };
  const auto type = [&] { return std::filesystem::symlink_status(path).type(); };
  using Type = std::filesystem::file_type;
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(error() == path + ": not a regular file");
  CHECK(type() == Type::fifo);
  std::filesystem::remove(path);
  // A link, as /dev/stdout is.
  std::filesystem::create_symlink(directory + "/other", path);
  CHECK(error() == path + ": not a regular file");
  CHECK(type() == Type::symlink);
  std::filesystem::remove(path);
  CHECK(error().empty());
  CHECK(type() == Type::regular);
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
  std::filesystem::remove_all(directory);
}

}  // namespace tubed::os
