// The build makes contents.S, with the plain and compressed bytes of each file, and rows.inc, with
// a row for each file: its number, its path and its type.
#include "console/files.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/crc32c.h"

#define CONSOLE_FILE(number, path, type)              \
  extern const char console_##number##_plain_begin[]; \
  extern const char console_##number##_plain_end[];   \
  extern const char console_##number##_gzip_begin[];  \
  extern const char console_##number##_gzip_end[];
extern "C" {
#include <rows.inc>
}
#undef CONSOLE_FILE

namespace tubed::console {

namespace {

File make_file(std::string_view path, const char* type, std::string_view plain,
               std::string_view gzip) {
  return {.path = path,
          .type = type,
          .plain = plain,
          .gzip = gzip,
          .tag = fmt::format("\"{:08x}-{:x}\"", crc32c(0, plain), plain.size())};
}

std::vector<File> make_files() {
  return {
#define CONSOLE_FILE(number, path, type)                                                \
  make_file(path, type, {console_##number##_plain_begin, console_##number##_plain_end}, \
            {console_##number##_gzip_begin, console_##number##_gzip_end}),
#include <rows.inc>
#undef CONSOLE_FILE
  };
}

}  // namespace

const File* find_file(std::string_view path) {
  static const std::vector<File> files = make_files();
  const auto found = std::ranges::find(files, path, &File::path);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace tubed::console
