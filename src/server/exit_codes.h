// How the process ends, as in <sysexits.h> where that has a word for it. config/command_line.h has
// those of a bad command line and bad settings, os/process.h that of no memory.
#pragma once

namespace tubed::server {

inline constexpr int kExitCannotListen = 69;  // EX_UNAVAILABLE
inline constexpr int kExitJournal = 73;  // the journal or the pid file cannot be used: EX_CANTCREAT
inline constexpr int kExitJournalFailed = 74;  // it failed while serving: EX_IOERR
inline constexpr int kExitNoServer = 75;       // none was found, or drained: EX_TEMPFAIL
inline constexpr int kExitNoUser = 77;         // EX_NOPERM

}  // namespace tubed::server
