// PipeChannel: a channel over two descriptors that the process was started with, standard input and
// output: pipes, a socket or a terminal.
//
// Filters change the bytes on their way. Writing is done in pieces that a pipe takes whole once it
// is writable, so that nothing is buffered here. Both descriptors are non-blocking while the
// channel exists, and as they were afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loop/channel.h"

namespace tubed::loop {

struct PipeFilters {
  // Appends to `out` what these bytes are on the other side. At most twice as many, and what it has
  // held back earlier, up to 2 KiB.
  using Filter = std::function<void(std::string_view bytes, std::string& out)>;
  Filter input;
  Filter output;
};

// Null: `input` cannot be watched, because it is a regular file or /dev/null. The descriptors stay
// open. `closed` is called when the channel is destroyed. `loop` outlives the channel.
std::unique_ptr<Channel> open_pipe_channel(Loop& loop, int input, int output, PipeFilters filters,
                                           std::function<void()> closed);

}  // namespace tubed::loop
