#include "os/file.h"

#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>

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
  // Nothing is left beside it.
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
  CHECK(read_file(directory + "/none").error().message ==
        directory + "/none: No such file or directory");
  CHECK_FALSE(replace_file(directory + "/none/file", "x"));
  std::filesystem::remove_all(directory);
}

}  // namespace tubed::os
