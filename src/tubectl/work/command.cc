// start() writes the body into a memory file, which becomes standard input: a pipe would need a
// writer until the command has read it. Then it forks:
// 1. The child leaves the process group, asks for SIGTERM at the death of tubectl, restores the
//    descriptor limit and the signal mask, and calls execvpe(). It allocates no memory, since
//    another thread may have held the allocator's lock during fork().
// 2. If one of these steps fails, the child writes errno into a pipe. The pipe closes on a
//    successful exec: the parent reads either an errno or the end of the pipe, without a race.
// 3. The parent opens a pidfd, which the event loop can watch and through which the parent collects
//    the exit status.
#include "tubectl/work/command.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "client/system_error.h"
#include "tubectl/exit_codes.h"
#include "tubectl/files.h"

namespace tubed::tubectl::work {
namespace {

constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

CannotRun cannot_execute(const std::string& program, int error) {
  return {error == ENOENT ? kExitNotFound : kExitNotExecutable,
          fmt::format("cannot run {}: {}", program, os::error_text(error))};
}

CannotRun cannot_start(const std::string& attempt) {
  return {kExitFailure, client::system_error(attempt).message};
}

// A memory file with the body: a command that does not read it blocks nothing.
std::optional<os::Descriptor> make_input(std::string_view body) {
  os::Descriptor file(::memfd_create("tubed-job", MFD_CLOEXEC));
  if (!file || !write_all(file, body) || ::lseek(file.number(), 0, SEEK_SET) != 0) {
    return std::nullopt;
  }
  return file;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Replaces variables of the same name, because runs of tubectl work may be nested.
std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    bool replaced = false;
    for (const auto& [name, value] : variables) {
      replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    }
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + '=' + value);
  return result;
}

// Runs in the child until execvpe(). Returns only on failure, with errno set.
void become_program(const CommandLine& command_line, pid_t parent, int input, char* const* words,
                    char* const* environment) {
  rlimit limit{};
  if (::setpgid(0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return;
  if (::getppid() != parent) ::raise(SIGKILL);  // the parent died before prctl()
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = command_line.descriptor_limit;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || ::dup2(input, STDIN_FILENO) < 0 ||
      ::sigprocmask(SIG_SETMASK, &command_line.signal_mask, nullptr) != 0) {
    return;
  }
  ::execvpe(words[0], words, environment);
}

// The error that the child reported; 0: it now runs the program.
int read_error(int pipe) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

// Sets errno if it is not a program.
bool is_program(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  errno = EACCES;
  return S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::variant<Command, CannotRun> Command::start(const CommandLine& command_line,
                                                std::string_view body, const Variables& variables) {
  const auto input = make_input(body);
  if (!input) return cannot_start("cannot keep the body for the command");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_start("cannot start a command");
  os::Descriptor read_end(ends[0]);
  os::Descriptor write_end(ends[1]);
  // Allocated here, because the child must not allocate.
  auto words = command_line.words;
  auto environment = environment_with(variables);
  const auto word_pointers = pointers_to(words);
  const auto environment_pointers = pointers_to(environment);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return cannot_start("cannot start a command");
  if (id == 0) {
    become_program(command_line, parent, input->number(), word_pointers.data(),
                   environment_pointers.data());
    const int error = errno;
    const ssize_t written = ::write(write_end.number(), &error, sizeof error);
    ::_exit(written == sizeof error ? kExitNotFound : kExitNotExecutable);
  }
  write_end = os::Descriptor();
  if (const int error = read_error(read_end.number()); error != 0) {
    ::waitpid(id, nullptr, 0);
    return cannot_execute(command_line.words.front(), error);
  }
  // The header of glibc 2.36 declares pidfd_open for C only.
  os::Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, id, 0)));
  if (!process) {
    const CannotRun reason = cannot_start("cannot watch a command");
    ::kill(-id, SIGKILL);
    ::waitpid(id, nullptr, 0);
    return reason;
  }
  return Command(id, std::move(process));
}

Ending Command::end() {
  siginfo_t status{};
  int done = 0;
  do {
    done = ::waitid(P_PIDFD, static_cast<id_t>(process_.number()), &status, WEXITED);
  } while (done != 0 && errno == EINTR);
  TUBED_ASSERT(done == 0);
  if (status.si_code == CLD_EXITED) return {status.si_status, 0};
  return {0, status.si_status};
}

// Searches PATH as execvpe() does: remembers EACCES, because a later directory may still have the
// program.
std::optional<CannotRun> look_for(const std::string& program) {
  if (program.find('/') != program.npos) {
    if (is_program(program)) return std::nullopt;
    return cannot_execute(program, errno);
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  int error = ENOENT;
  for (;;) {
    const auto colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    const std::string file = fmt::format("{}/{}", directory.empty() ? "." : directory, program);
    if (is_program(file)) return std::nullopt;
    if (errno == EACCES) error = EACCES;
    if (colon == rest.npos) return cannot_execute(program, error);
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace tubed::tubectl::work
