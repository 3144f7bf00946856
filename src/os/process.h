// What the operating system tells of this process and machine, and what it is asked to change.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "os/descriptor.h"

namespace tubed::os {

struct MachineNames {
  std::string hostname;
  std::string os;        // the kernel's version, as uname -v
  std::string platform;  // the architecture, as uname -m
};
MachineNames machine_names();
// A random id that the kernel chose when it started: $TUBED_BOOT_ID, for a service whose sandbox
// hides /proc/sys, or what the kernel says there; empty if it is not known.
std::string boot_id();

std::uint64_t process_id();

struct ProcessTimes {
  Duration user{};
  Duration system{};
};
ProcessTimes process_times();
// Memory that the process has in use, as /proc/self/statm tells it; 0 where there is none.
std::uint64_t resident_bytes();

// Never 0.
std::uint64_t random_number();
// 16 random hexadecimal digits.
std::string random_instance_id();

// Ends the process at once, without waiting for anything: not even for a disk that does not answer.
[[noreturn]] void exit_now(int code);

// When an allocation fails the process says so and exits with kExitNoMemory: the queue's own bound,
// limits.job_memory, is what answers clients.
inline constexpr int kExitNoMemory = 71;
void exit_when_out_of_memory();

// Gives free memory of the heap back to the system: glibc keeps tens of megabytes once large blocks
// were freed. O(what is free).
void give_back_heap();

// How many descriptors are open. Linux 6.2 and later has the number as the size of `directory`; on
// an earlier one this lists the directory. O(1), or O(open descriptors).
std::uint64_t open_descriptors(const char* directory = "/proc/self/fd");
// How many may be open.
std::uint64_t descriptor_limit();

// Raises the soft limit of open descriptors to the hard one; returns the limit now in force.
std::uint64_t raise_descriptor_limit();

// Another process. Its number may be another process's tomorrow; this handle stays the same one's.
// Errors are one line.
class OtherProcess {
 public:
  static Result<OtherProcess> open(std::uint64_t number);
  Result<void> signal(int signal) const;
  // Blocks until the process has ended.
  Result<void> wait_for_end() const;

 private:
  OtherProcess(std::uint64_t number, Descriptor handle)
      : number_(number), handle_(std::move(handle)) {}

  std::uint64_t number_;
  Descriptor handle_;
};

// Becomes `user`, with its groups, for good. Does nothing when that is who we are.
Result<void> become_user(const std::string& user);

}  // namespace tubed::os
