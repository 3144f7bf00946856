#include "base/assert.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

TEST_CASE("a failed assertion aborts the process, in release builds too, and prints the claim") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    const int jobs = 1;
    TUBED_ASSERT(jobs == 2);
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
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(said.find("assert_test.cc") != std::string::npos);
  CHECK(said.find("assertion failed: jobs == 2") != std::string::npos);
}
