// Interruption: SIGINT and SIGTERM as a question that is asked between two batches.
#pragma once

namespace tubed::tubectl {

// From now on the first of these signals only sets a mark; a second one ends the process.
void stop_on_signals();
bool stop_asked();

}  // namespace tubed::tubectl
