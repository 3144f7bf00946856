// FakeNames: the names below ".test", as the tests want them to be resolved. The program's own
// getaddrinfo() takes the place of the system's, which resolves all other names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tubed::loop_test {

// Destroying it forgets all names and ends all holds. Unknown names do not exist.
class FakeNames {
 public:
  FakeNames();
  ~FakeNames();
  FakeNames(const FakeNames&) = delete;
  FakeNames& operator=(const FakeNames&) = delete;

  // Numeric addresses of IPv4.
  static void set(const std::string& name, std::vector<std::string> hosts);
  // Lookups that are under way, and later ones, end after release() only.
  static void hold();
  static void release();
  // Returns how many lookups have begun.
  static std::size_t begun();
  // Returns how many threads that looked up names have ended.
  static std::size_t ended();
};

}  // namespace tubed::loop_test
