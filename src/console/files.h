// The files of the console, compiled into the program: the files of web/, dygraphs, and the
// description of the API.
#pragma once

#include <string>
#include <string_view>

namespace tubed::console {

// All views are valid as long as the program runs.
struct File {
  std::string_view path;  // "/", "/console/table.js" or "/api/v1/openapi.json"
  const char* type;       // content type
  std::string_view plain;
  std::string_view gzip;  // the content, compressed
  std::string tag;        // ETag of the content, with its quotes
};

// Null: no such file. O(files).
const File* find_file(std::string_view path);

}  // namespace tubed::console
