// Command lines for tests.
#pragma once

#include <string>
#include <vector>

namespace tubed::options_test {

// As main() gets them, without the program's name. The words must outlive the result.
inline std::vector<const char*> pointers(const std::vector<std::string>& words) {
  std::vector<const char*> result;
  for (const std::string& word : words) result.push_back(word.c_str());
  return result;
}

// An environment without variables.
inline const char* no_environment(const char*) {
  return nullptr;
}

}  // namespace tubed::options_test
