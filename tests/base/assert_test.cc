#include "base/assert.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Runs `run` in a child process. Returns what it wrote to stderr if it was ended by SIGABRT, else
// an empty string.
template <class Run>
std::string said_before_abort(Run run) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    run();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::array<char, 512> buffer;
  std::string said;
  for (ssize_t got; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : std::string();
}

}  // namespace

TEST_CASE("a failed assertion aborts the process, in release builds too, and prints the claim") {
  const std::string said = said_before_abort([] {
    const int jobs = 1;
    TUBED_ASSERT(jobs == 2);
  });
  CHECK(said.find("assert_test.cc") != std::string::npos);
  CHECK(said.find("assertion failed: jobs == 2") != std::string::npos);
}

// Every build has these checks (cmake/TubedTargets.cmake).
TEST_CASE("an access to an empty optional or outside of a vector aborts the process") {
  const std::optional<int> none;
  const std::vector<int> one = {1};
  volatile int read = 0;
  CHECK_FALSE(said_before_abort([&] { read = *none; }).empty());
  CHECK_FALSE(said_before_abort([&] { read = one[static_cast<std::size_t>(one[0])]; }).empty());
  CHECK(said_before_abort([&] { read = one[0]; }).empty());
}
