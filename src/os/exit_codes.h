// Exit codes of the process, with their names in <sysexits.h>. config/command_line.h has the codes
// for an invalid command line and invalid settings, os/process.h the code for a lack of resources.
//
// 79 to 81 are outside the range of <sysexits.h>: the server ended because an operator asked for
// it. The units do not restart the service, and count 79 and 80 as success.
#pragma once

namespace tubed::os {

inline constexpr int kExitCannotListen = 69;  // EX_UNAVAILABLE
inline constexpr int kExitJournal = 73;  // EX_CANTCREAT: the journal or the pid file is unusable
inline constexpr int kExitJournalFailed = 74;  // EX_IOERR: the journal has failed while serving
inline constexpr int kExitOutput = 74;         // EX_IOERR: the output of a task is incomplete
inline constexpr int kExitNoServer = 75;  // EX_TEMPFAIL: no server was found, or it has not drained
inline constexpr int kExitNoUser = 77;    // EX_NOPERM
inline constexpr int kExitDrainTimedOut = 79;  // drain.timeout expired before the drain ended
inline constexpr int kExitRemoved = 80;        // the node was removed from its cluster
inline constexpr int kExitSuperseded = 81;     // its cluster was recovered on another node

}  // namespace tubed::os
