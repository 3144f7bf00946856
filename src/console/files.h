// The files of the console, compiled into the program: the files of web/, and dygraphs.
#pragma once

#include <string>
#include <string_view>

namespace tubed::console {

// All views are valid as long as the program runs.
struct File {
  std::string_view path;  // "/" or "/console/table.js"
  const char* type;       // content type
  std::string_view plain;
  std::string_view gzip;  // the content, compressed
  std::string tag;        // ETag of the content, with its quotes
};

// Null: no such file. O(files).
const File* find_file(std::string_view path);

}  // namespace tubed::console
