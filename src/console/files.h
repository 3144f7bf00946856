// The files of the console, which are compiled into the program: those of web/, and dygraphs.
#pragma once

#include <string>
#include <string_view>

namespace tubed::console {

// Everything lives as long as the program.
struct File {
  std::string_view path;  // "/" or "/console/table.js"
  const char* type;       // of its content
  std::string_view plain;
  std::string_view gzip;  // the same, compressed
  std::string tag;        // an ETag of the content, with its quotes
};

// Null: there is no such file. O(files).
const File* find_file(std::string_view path);

}  // namespace tubed::console
