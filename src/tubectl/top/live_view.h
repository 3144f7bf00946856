// LiveView: the loop of tubectl top: keys, signals, the server's answers and the next result.
#pragma once

#include <chrono>

#include "base/result.h"
#include "tubectl/commands/command.h"
#include "tubectl/top/model.h"
#include "tubectl/top/text.h"

namespace tubed::tubectl::top {

// Runs until the user quits or a signal ends it; returns the exit code. An Error: the server cannot
// be reached at the start. A server that is lost later is waited for. Precondition: standard input
// and output are a terminal.
Result<int> run_live_view(const Server& server, Model model, const Glyphs& glyphs,
                          std::chrono::steady_clock::duration interval);

}  // namespace tubed::tubectl::top
