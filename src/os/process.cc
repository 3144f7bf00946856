// Wrappers of system calls that concern a process as a whole. They share no state.
//
// Usage numbers come from getrusage(2) and /proc. An unavailable number is 0: statistics must not
// fail. Other processes are addressed by pidfd; a process id may be reused. Functions that cannot
// fail on Linux assert or ignore the return value; functions that depend on the environment return
// a Result.
#include "os/process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/planted.h"
#include "text/numbers.h"

namespace tubed::os {

namespace {

Duration as_duration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

MachineNames machine_names() {
  utsname names{};
  ::uname(&names);
  return {.hostname = names.nodename, .os = names.version, .platform = names.machine};
}

std::string boot_id() {
  std::string id;
  if (const char* given = std::getenv("TUBED_BOOT_ID"); given != nullptr) {
    id = given;
  } else {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, id);
  }
  std::erase(id, '-');  // systemd formats the id without hyphens
  return id;
}

std::uint64_t process_id() {
  return static_cast<std::uint64_t>(::getpid());
}

ProcessTimes process_times() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {.user = as_duration(usage.ru_utime), .system = as_duration(usage.ru_stime)};
}

std::uint64_t resident_bytes() {
  const Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t got = file ? ::read(file.number(), text, sizeof text) : -1;
  if (got <= 0) return 0;
  // The first number is the total size, the second the resident size, both in pages.
  const std::string_view words(text, static_cast<std::size_t>(got));
  const std::size_t second = words.find(' ') + 1;
  const auto pages = leading_number<std::uint64_t>(words.substr(second));
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) {
    // After boot, a request for a few bytes neither blocks nor fails.
    const ssize_t got = ::getrandom(&number, sizeof number, 0);
    TUBED_ASSERT(got == sizeof number);
  }
  return number;
}

std::string random_instance_id() {
  return fmt::format("{:016x}", random_number());
}

void exit_now(int code) {
  ::_exit(code);
}

void exit_when_out_of_memory() {
  std::set_new_handler([] {
    constexpr std::string_view kMessage = "tubed: out of memory; lower limits.job_memory\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ::_exit(kExitNoMemory);
  });
}

void trim_heap() {
  ::malloc_trim(0);
}

std::uint64_t open_descriptors(const char* directory) {
  struct stat status {};
  if (::stat(directory, &status) != 0) return 0;
  if (status.st_size > 0) return static_cast<std::uint64_t>(status.st_size);
  DIR* const stream = ::opendir(directory);
  if (stream == nullptr) return 0;
  std::uint64_t entries = 0;
  while (::readdir(stream) != nullptr) ++entries;
  ::closedir(stream);
  return entries - 3;  // not counting ".", ".." and the stream itself
}

std::uint64_t descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return descriptor_limit();
}

Result<void> expect_descriptors(std::size_t count) {
  if (TUBED_PLANTED(few_descriptors_are_accepted)) return {};
  std::vector<Descriptor> opened;
  while (opened.size() < count) {
    opened.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (opened.back()) continue;
    return Error{fmt::format(
        "{} files have to be opened, and only {} can be: {}; at most {} may be open (ulimit -n, "
        "LimitNOFILE= of a service)",
        count, opened.size() - 1, error_text(errno), descriptor_limit())};
  }
  return {};
}

bool sees_all_users() {
  constexpr std::uint32_t kAll = UINT32_MAX;
  std::ifstream map("/proc/self/uid_map");
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
  // A kernel without user namespaces has no such file.
  return !(map >> inside >> outside >> count) || count == kAll;
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  if (const passwd* entry = ::getpwnam(name.c_str()); entry != nullptr) return entry->pw_uid;
  return parse_number<std::uint32_t>(name);
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  if (const group* entry = ::getgrnam(name.c_str()); entry != nullptr) return entry->gr_gid;
  return parse_number<std::uint32_t>(name);
}

Result<OtherProcess> OtherProcess::open(std::uint64_t id) {
  Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, id, 0)));
  if (!handle) return Error{fmt::format("process {}: {}", id, error_text(errno))};
  return OtherProcess(id, std::move(handle));
}

Result<void> OtherProcess::signal(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, handle_.number(), signal, nullptr, 0) == 0) return {};
  return Error{fmt::format("process {}: {}", id_, error_text(errno))};
}

Result<bool> OtherProcess::ends_within(std::chrono::milliseconds limit) const {
  pollfd ended{.fd = handle_.number(), .events = POLLIN, .revents = 0};
  const int found = ::poll(&ended, 1, static_cast<int>(limit.count()));
  if (found < 0 && errno != EINTR) {
    return Error{fmt::format("waiting for process {}: {}", id_, error_text(errno))};
  }
  return found == 1;
}

bool is_user(const std::string& name) {
  return ::getpwnam(name.c_str()) != nullptr;
}

Result<void> become_user(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry == nullptr) return Error{fmt::format("no user {}", user)};
  if (entry->pw_uid == ::geteuid()) return {};
  if (::initgroups(user.c_str(), entry->pw_gid) != 0 || ::setgid(entry->pw_gid) != 0 ||
      ::setuid(entry->pw_uid) != 0) {
    return Error{fmt::format("cannot become user {}: {}", user, std::strerror(errno))};
  }
  return {};
}

}  // namespace tubed::os
