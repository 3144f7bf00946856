// This process and its machine: names, ids, resource usage and limits, the end of the process, and
// the processes that it controls.
//
// All functions may be called at any time, from any thread, except exit_when_out_of_memory() and
// become_user(), which are for start-up.
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
  std::string os;        // the version of the kernel, as uname -v prints it
  std::string platform;  // the architecture, as uname -m prints it
};
MachineNames machine_names();
// The random id that the kernel has chosen at its start. It is read from /proc/sys, or from
// $TUBED_BOOT_ID, which a service sets whose sandbox hides /proc/sys. Empty: unknown.
std::string boot_id();

std::uint64_t process_id();

// Processor time of this process.
struct ProcessTimes {
  Duration user{};
  Duration system{};
};
ProcessTimes process_times();
// Resident memory of this process in bytes, from /proc/self/statm. 0: unknown.
std::uint64_t resident_bytes();

// A random number from the kernel, not 0.
std::uint64_t random_number();
// 16 random hexadecimal digits.
std::string random_instance_id();

// The machine gives the process too little: no thread, too few descriptors.
inline constexpr int kExitNoResources = 71;  // EX_OSERR
// Ends the process at once. Runs no destructors and waits for nothing, not even for a disk that
// does not respond.
[[noreturn]] void exit_now(int code);

// From now on the process prints a line and exits with kExitNoMemory when an allocation fails. This
// is not how a client reaches the limit of the queue's memory: limits.job_memory is answered with
// OUT_OF_MEMORY before.
inline constexpr int kExitNoMemory = 71;  // EX_OSERR
void exit_when_out_of_memory();

// Returns free memory of the heap to the system: glibc keeps tens of megabytes after large blocks
// were freed. O(free memory).
void trim_heap();

// The number of open descriptors. Since Linux 6.2 it is the size of `directory`, which is O(1); on
// an older kernel the directory is listed, which is O(open descriptors). 0: unknown.
std::uint64_t open_descriptors(const char* directory = "/proc/self/fd");
// The soft limit of open descriptors.
std::uint64_t descriptor_limit();

// Raises the soft limit of open descriptors to the hard limit. Returns the new soft limit.
std::uint64_t raise_descriptor_limit();

// Fails if `count` more files cannot be opened now. The error is one line. For code that cannot
// report it later: libuv's loops. O(count).
Result<void> expect_descriptors(std::size_t count);

// The id of a user or a group that is given by its name or its number. Nothing: none has the name.
std::optional<std::uint32_t> user_id(const std::string& name);
std::optional<std::uint32_t> group_id(const std::string& name);

// False in a user namespace that has a part of the users only (PrivateUsers= of systemd): the
// kernel then shows others as one and the same user.
bool sees_all_users();

// OtherProcess: a handle (pidfd) of another process. It stays with this process, while the kernel
// may give its id to another process after it has ended. Errors are one line.
class OtherProcess {
 public:
  static Result<OtherProcess> open(std::uint64_t id);
  Result<void> signal(int signal) const;
  // Waits for `limit` at most. True: the process has ended.
  Result<bool> ends_within(std::chrono::milliseconds limit) const;

 private:
  OtherProcess(std::uint64_t id, Descriptor handle) : id_(id), handle_(std::move(handle)) {}

  std::uint64_t id_;
  Descriptor handle_;
};

// True if a user has this name, which become_user() takes.
bool is_user(const std::string& name);

// Changes to the user `user` and its groups; the process cannot change back. Does nothing if the
// process already runs as this user. The error is one line.
Result<void> become_user(const std::string& user);

}  // namespace tubed::os
