// TestModeOptions: the flags of a server for test suites. They are no settings: no file sets them,
// and a reload does not change them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tubed {

// How the time of the queue passes.
enum class TestClock : std::uint8_t { manual, automatic, real };
// As --test-mode takes them, in the order of TestClock.
inline constexpr std::array<std::string_view, 3> kTestClockNames = {"manual", "auto", "real"};

struct TestModeOptions {
  TestClock clock = TestClock::manual;
  bool use_stdin = true;     // standard input and output are the control connection
  std::string address_file;  // empty: the address goes to standard output
  std::string preload;       // the file with the first jobs; empty: none
};

}  // namespace tubed
