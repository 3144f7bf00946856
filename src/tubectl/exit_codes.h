// Exit codes, as in <sysexits.h> where it defines them. tubectl(1) documents them.
//
// Scripts depend on the codes, so each keeps its meaning. A subcommand that runs a program (work)
// also exits with 126 and 127 if the program cannot be started, as a shell does.
#pragma once

namespace tubed::tubectl {

inline constexpr int kExitFailure = 1;       // the server refused, or something does not exist
inline constexpr int kExitBuried = 2;        // wait: the job is buried
inline constexpr int kExitUsage = 64;        // EX_USAGE
inline constexpr int kExitBadInput = 65;     // EX_DATAERR: the input is malformed
inline constexpr int kExitUnavailable = 69;  // EX_UNAVAILABLE: no server, or it is lost
inline constexpr int kExitIo = 74;           // EX_IOERR: a file, a pipe or the terminal
inline constexpr int kExitTimedOut = 75;     // EX_TEMPFAIL: a time limit was exceeded
inline constexpr int kExitNotAllowed = 77;   // EX_NOPERM

}  // namespace tubed::tubectl
