// The first step of each program: descriptors and signals that its parent may have left in a state
// that the program does not expect.
//
// The process keeps what else it inherits: the umask, which decides about files without a mode of
// their own, the current directory, from which relative paths are resolved, the environment, and
// the limits, except that of descriptors (os/process.h).
#pragma once

namespace tubed::os {

// Calls the two functions below. main() calls it first, before any thread starts.
void clean_start();

// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed. Otherwise a file or a socket
// would get the number: output would be written into it, and libuv aborts when it closes it. As
// with a closed descriptor, reading from 0 and writing to 1 and 2 fails with EBADF.
void occupy_standard_descriptors();

// Blocks no signal, and gives every ignored signal its default action: exec(2) keeps both from the
// parent. Signals that a terminal sends stay ignored: nohup(1) ignores SIGHUP, a shell SIGINT and
// SIGQUIT for a command in the background, and both mean it.
void reset_signals();

}  // namespace tubed::os
