// The first step of each program: repairs descriptors and signals that the parent may have left in
// an unexpected state.
//
// The process keeps everything else that it inherits: the umask, which applies to files without a
// mode of their own; the current directory, from which relative paths are resolved; the
// environment; and the limits, except the limit on descriptors (os/process.h).
#pragma once

namespace tubed::os {

// Calls the two functions below. main() calls it first, before any thread starts.
void clean_start();

// Opens /dev/null for each closed descriptor among 0, 1 and 2. Otherwise a file or a socket would
// get the number: output would be written into it, and libuv aborts when it closes it. Reading from
// 0 and writing to 1 and 2 still fail with EBADF, as with a closed descriptor.
void occupy_standard_descriptors();

// Unblocks all signals and gives ignored signals their default action: exec(2) keeps both from the
// parent. Signals that a terminal sends stay ignored, because ignoring them is intended: nohup(1)
// ignores SIGHUP, and a shell ignores SIGINT and SIGQUIT for a command in the background.
void reset_signals();

}  // namespace tubed::os
