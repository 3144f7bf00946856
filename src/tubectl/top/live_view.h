// LiveView: the loop of tubectl top: keys, signals, the server's answers and the next result.
#pragma once

#include <chrono>

#include "base/result.h"
#include "tubectl/commands/command.h"
#include "tubectl/top/model.h"
#include "tubectl/top/text.h"

namespace tubed::tubectl::top {

// Runs until the user quits or a signal arrives; returns the exit code. Fails if the server cannot
// be reached at the start; a server that is lost later is retried. Precondition: standard input and
// output are a terminal.
Result<int> run_live_view(const Server& server, Model model, const Glyphs& glyphs,
                          std::chrono::steady_clock::duration interval);

}  // namespace tubed::tubectl::top
