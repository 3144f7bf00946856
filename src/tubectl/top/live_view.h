// LiveView: the loop of tubectl top: keys, signals, the server's answers and the next result.
#pragma once

#include <chrono>

#include "base/result.h"
#include "tubectl/commands/command.h"
#include "tubectl/top/model.h"
#include "tubectl/top/text.h"

namespace tubed::tubectl::top {

// Until it is stats to leave; returns the exit code. An Error: there is no server at the start, for
// later it waits until it comes back. Precondition: standard input and output are a terminal.
Result<int> run_live_view(const Server& server, Model model, const Glyphs& glyphs,
                          std::chrono::steady_clock::duration interval);

}  // namespace tubed::tubectl::top
