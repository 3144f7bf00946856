// LingeringClose: keeps a connection open for a while after this side has ended it, and discards
// what still arrives.
//
// For a response that is sent before the request was read. The kernel resets a connection that is
// closed with unread input, and a peer that is still sending could lose the response.
#pragma once

#include <functional>
#include <memory>

#include "loop/channel.h"
#include "loop/timer.h"

namespace tubed::loop {

class LingeringClose final : public ChannelOwner {
 public:
  static constexpr Duration kTimeout = std::chrono::seconds(2);
  static constexpr std::size_t kMaxBytes = 4 * 1024 * 1024;

  // Output of `channel` has ended. Calls `ended` once, when the peer has ended too or a bound is
  // reached; it destroys the object. `loop` outlives the object.
  LingeringClose(Loop& loop, std::unique_ptr<Channel> channel, std::function<void()> ended);
  LingeringClose(const LingeringClose&) = delete;
  LingeringClose& operator=(const LingeringClose&) = delete;

 private:
  void on_ready(Readiness ready) override;

  std::unique_ptr<Channel> channel_;
  std::function<void()> ended_;
  std::size_t discarded_ = 0;
  Timer timeout_;
};

}  // namespace tubed::loop
