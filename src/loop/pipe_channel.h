// PipeChannel: a channel over standard input and output, or two other descriptors that the process
// inherited: pipes, a socket or a terminal.
//
// Filters change the bytes in each direction. Each write is small enough that a writable pipe takes
// it whole, so nothing is buffered here. Both descriptors are non-blocking while the channel
// exists; their flags are restored afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loop/channel.h"

namespace tubed::loop {

struct PipeFilters {
  // Appends the filtered `bytes` to `out`: at most twice as many, plus up to 2 KiB held back
  // earlier.
  using Filter = std::function<void(std::string_view bytes, std::string& out)>;
  Filter input;
  Filter output;
};

// Returns null if `input` cannot be watched, because it is a regular file or /dev/null. The
// descriptors stay open. `closed` is called when the channel is destroyed. `loop` outlives the
// channel.
std::unique_ptr<Channel> open_pipe_channel(Loop& loop, int input, int output, PipeFilters filters,
                                           std::function<void()> closed);

}  // namespace tubed::loop
