#include "os/pid_file.h"

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/process.h"
#include "tests/loop/loopback.h"

namespace tubed::os_test {

using namespace loop_test;

using os::OtherPidFile;
using os::PidFile;

namespace {

// Must not run in the process that holds the lock: closing the file would release it.
std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Starts a child that runs `work`. It exits with 0 if `work` returns true.
template <class Work>
pid_t fork_into(Work work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

int exit_status_of(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

// Checks a condition in a child, because a record lock does not exclude the process that holds it.
bool holds_in_child(const std::function<bool()>& condition) {
  return exit_status_of(fork_into(condition)) == 0;
}

}  // namespace

TEST_CASE("a device or a pipe is no pid file, and its path stays") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto file = PidFile::open(path);
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message == "pid_file " + path + ": not a regular file");
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
}

TEST_CASE("a pid file that cannot be removed loses its process id and keeps the last words") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  CHECK(holds_in_child([&] {
    auto file = PidFile::open(path);
    if (!file.ok() || ::chmod(directory.file(".").c_str(), 0555) != 0) return false;
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return false;
    (*file)->close_with("drained");
    return ::access(path.c_str(), F_OK) == 0 && contents(path) == "\ndrained\n";
  }));
  REQUIRE(::chmod(directory.file(".").c_str(), 0755) == 0);
}

TEST_CASE("a pid file names the process that holds it, and is removed at its end") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  {
    auto file = PidFile::open(path);
    REQUIRE(file.ok());
    const auto we = static_cast<std::uint64_t>(::getpid());
    CHECK(holds_in_child([&] { return contents(path) == std::to_string(we) + "\n"; }));
    CHECK(holds_in_child([&] {
      const auto found = OtherPidFile::open(path);
      return found.ok() && found->process() == we;
    }));
    CHECK(holds_in_child([&] {
      auto second = PidFile::open(path);
      return !second.ok() &&
             second.error().message.find("is in use by process ") != std::string::npos;
    }));
    CHECK(holds_in_child([&] { return contents(path) == std::to_string(we) + "\n"; }));
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("a pid file without a lock names no process, and is reused") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  std::ofstream(path) << "1234567890\n";
  const auto holder = OtherPidFile::open(path);
  REQUIRE_FALSE(holder.ok());
  CHECK(holder.error().message == "pid_file " + path + ": no server keeps it");
  auto file = PidFile::open(path);
  REQUIRE(file.ok());
  CHECK(contents(path) == std::to_string(::getpid()) + "\n");
}

TEST_CASE("a pid file that has replaced another is not removed") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  {
    auto file = PidFile::open(path);
    REQUIRE(file.ok());
    REQUIRE(::unlink(path.c_str()) == 0);
    std::ofstream(path) << "another\n";
  }
  CHECK(contents(path) == "another\n");
}

TEST_CASE("a pid file passes a flag and last words on to processes that have it open") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  std::array<int, 2> to_child{};
  std::array<int, 2> to_parent{};
  REQUIRE((::pipe(to_child.data()) == 0 && ::pipe(to_parent.data()) == 0));
  auto file = PidFile::open(path);
  REQUIRE(file.ok());
  // Answers each byte with whether the child sees the flag. At the end the child reads the last
  // words.
  const pid_t child = fork_into([&] {
    ::close(to_child[1]);
    const auto other = OtherPidFile::open(path);
    if (!other.ok()) return false;
    char byte = 0;
    while (::read(to_child[0], &byte, 1) == 1) {
      const char answer = other->flag().value_or(false) ? 'y' : 'n';
      // The parent writes the last words once it has the last answer.
      const bool is_silent = other->last_words().empty();
      if (::write(to_parent[1], &answer, 1) != 1 || !is_silent) return false;
    }
    return other->last_words() == "drained: no job is left";
  });
  ::close(to_child[0]);
  const auto child_sees_flag = [&] {
    char answer = 0;
    const bool asked = ::write(to_child[1], "?", 1) == 1 && ::read(to_parent[0], &answer, 1) == 1;
    CHECK(asked);
    return answer == 'y';
  };
  CHECK_FALSE(child_sees_flag());
  (*file)->set_flag(true);
  CHECK(child_sees_flag());
  const auto we = std::to_string(::getpid());
  CHECK(holds_in_child([&] { return contents(path) == we + "\n"; }));
  (*file)->set_flag(false);
  CHECK_FALSE(child_sees_flag());
  (*file)->set_flag(true);
  (*file)->close_with("drained: no job is left");
  CHECK(::access(path.c_str(), F_OK) != 0);
  ::close(to_child[1]);
  CHECK(exit_status_of(child) == 0);
  for (const int end : {to_parent[0], to_parent[1]}) ::close(end);
}

TEST_CASE("a pid file of 2.0.0, which has no flag, is recognised") {
  Directory directory;
  const std::string path = directory.file("tubed.pid");
  {
    auto file = PidFile::open(path);
    REQUIRE(file.ok());
    for (const bool set : {false, true, false}) {
      (*file)->set_flag(set);
      CHECK(holds_in_child([&] {
        const auto other = OtherPidFile::open(path);
        return other.ok() && other->has_flag() && other->flag() == set;
      }));
    }
  }
  // Writes and locks the file as 2.0.0 does.
  const os::Descriptor old(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  REQUIRE(os::lock_file(old, path).ok());
  const std::string text = std::to_string(::getpid()) + "\n";
  REQUIRE(::pwrite(old.number(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  const auto we = static_cast<std::uint64_t>(::getpid());
  CHECK(holds_in_child([&] {
    const auto other = OtherPidFile::open(path);
    return other.ok() && other->process() == we && !other->has_flag() &&
           other->last_words().empty();
  }));
  CHECK(holds_in_child([&] { return !PidFile::open(path).ok(); }));
}

TEST_CASE("a path where no file can be created is an error") {
  Directory directory;
  const auto file = PidFile::open(directory.file("nowhere/tubed.pid"));
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message.find("No such file or directory") != std::string::npos);
}

TEST_CASE("a process receives a signal, and its end can be awaited") {
  const pid_t child = fork_into([] {
    for (;;) ::pause();
    return true;
  });
  const auto process = os::OtherProcess::open(static_cast<std::uint64_t>(child));
  REQUIRE(process.ok());
  REQUIRE(process.value().signal(SIGKILL).ok());
  Result<bool> ended = false;
  do ended = process.value().ends_within(std::chrono::seconds(1));
  while (ended.ok() && !*ended);
  REQUIRE(ended.ok());
  const int status = exit_status_of(child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK_FALSE(process.value().signal(0).ok());
  CHECK_FALSE(os::OtherProcess::open(static_cast<std::uint64_t>(child)).ok());
}

}  // namespace tubed::os_test
