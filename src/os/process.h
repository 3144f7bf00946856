// This process and its machine: names, ids, resource usage and limits, the end of the process, and
// other processes.
//
// All functions may be called at any time from any thread, except exit_when_out_of_memory() and
// become_user(), which belong to start-up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "os/descriptor.h"

namespace tubed::os {

struct MachineNames {
  std::string hostname;
  std::string os;        // version of the kernel, as uname -v prints it
  std::string platform;  // architecture, as uname -m prints it
};
MachineNames machine_names();
// Returns the random id that the kernel chose at boot, from /proc/sys or from $TUBED_BOOT_ID, which
// a service sets if its sandbox hides /proc/sys. Empty: unknown.
std::string boot_id();

std::uint64_t process_id();

// Processor time used by this process.
struct ProcessTimes {
  Duration user{};
  Duration system{};
};
ProcessTimes process_times();
// Returns the resident memory of this process in bytes, from /proc/self/statm. 0: unknown.
std::uint64_t resident_bytes();

// Returns a random number from the kernel, never 0.
std::uint64_t random_number();
// Returns 16 random hexadecimal digits.
std::string random_instance_id();

// The system cannot start a thread, or provides too few descriptors.
inline constexpr int kExitNoResources = 71;  // EX_OSERR
// Ends the process at once. Runs no destructors and waits for nothing, not even a disk that does
// not respond.
[[noreturn]] void exit_now(int code);

// Makes a failed allocation print a line and exit with kExitNoMemory. Clients do not reach this by
// filling the queue: at limits.job_memory they are answered OUT_OF_MEMORY.
inline constexpr int kExitNoMemory = 71;  // EX_OSERR
void exit_when_out_of_memory();

// Returns free heap memory to the system: glibc keeps tens of megabytes after large blocks are
// freed. O(free memory).
void trim_heap();

// Returns the number of open descriptors; 0: unknown. O(1) since Linux 6.2, where it is the size of
// `directory`; O(open descriptors) on older kernels, where the directory is listed.
std::uint64_t open_descriptors(const char* directory = "/proc/self/fd");
// Returns the soft limit on open descriptors.
std::uint64_t descriptor_limit();

// Raises the soft limit on open descriptors to the hard limit. Returns the new soft limit.
std::uint64_t raise_descriptor_limit();

// Fails if `count` more files cannot be opened now. The error is one line. For code that cannot
// report this later, such as libuv's loops. O(count).
Result<void> expect_descriptors(std::size_t count);

// Returns the id of a user or a group, given by name or number. Nothing: the name does not exist.
std::optional<std::uint32_t> user_id(const std::string& name);
std::optional<std::uint32_t> group_id(const std::string& name);

// False in a user namespace that maps only some users (PrivateUsers= of systemd): the kernel then
// reports all others as the same user.
bool sees_all_users();

// OtherProcess: a handle (pidfd) of another process. Unlike a process id, it is never reused for a
// different process. Errors are one line.
class OtherProcess {
 public:
  static Result<OtherProcess> open(std::uint64_t id);
  Result<void> signal(int signal) const;
  // Waits at most `limit`. Returns true if the process has ended.
  Result<bool> ends_within(std::chrono::milliseconds limit) const;

 private:
  OtherProcess(std::uint64_t id, Descriptor handle) : id_(id), handle_(std::move(handle)) {}

  std::uint64_t id_;
  Descriptor handle_;
};

// True if become_user() can change to a user of this name.
bool is_user(const std::string& name);

// Changes to `user` and its groups; the process cannot change back. Does nothing if the process
// already runs as this user. The error is one line.
Result<void> become_user(const std::string& user);

}  // namespace tubed::os
