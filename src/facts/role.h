// Role: what a client may do: which families of commands, in which tubes, within which limits.
// [extension: authentication]
//
// A role is a value. The settings have roles; commands/ applies them to the commands of a client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/types.h"

namespace tubed {

// The families of commands. Each command is in one.
enum class Access : std::uint8_t {
  open,     // needs no authentication
  any,      // needs no permission
  produce,  // puts jobs
  work,     // takes jobs and ends them
  inspect,  // shows jobs and counts
  admin,    // moves the jobs of others
};

// Bounds of the clients of a role, below the server's. Zero: no bound.
struct RoleLimits {
  std::uint32_t connections = 0;
  std::uint32_t job_bytes = 0;
  std::uint32_t put_rate = 0;    // jobs in a second, of all clients of the role
  std::uint64_t job_memory = 0;  // its clients put no job while all jobs use more bytes than this
  std::uint64_t tubes = 0;       // its clients create no tube while this many exist
  std::uint64_t policies = 0;    // its clients set no further value while this many are set
  friend bool operator==(const RoleLimits&, const RoleLimits&) = default;
};

struct Role {
  std::string name;
  bool produce = false;
  bool work = false;
  bool inspect = false;
  bool admin = false;
  std::vector<std::string> tubes;  // patterns, as of policies; empty: all tubes
  RoleLimits limits;
  friend bool operator==(const Role&, const Role&) = default;
};

// True if clients of the role may use commands of the family.
bool may(const Role& role, Access access);
// True if clients of the role may use the tube, and see its jobs. O(patterns).
bool may_use(const Role& role, std::string_view tube);

// True if the name matches the pattern, as of fnmatch(3). O(name) for a pattern with one star.
bool matches_name(const std::string& pattern, std::string_view name);
// False if the name of no tube can match the pattern. O(pattern).
bool is_tube_pattern(std::string_view pattern);

}  // namespace tubed
