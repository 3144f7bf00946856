// Bridge: passes bytes between two channels, in both directions, until both have ended.
//
// It connects TLS to a server that works on a socket of its own and knows nothing of TLS. Each
// direction buffers the bytes of one read, at most kBufferBytes, and reads again when they are
// written.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "loop/channel.h"
#include "loop/timer.h"

namespace tubed::loop {

class Bridge {
 public:
  static constexpr std::size_t kBufferBytes = 16 * 1024;
  // How long the outer peer may take to end its side after the inner peer has.
  static constexpr Duration kLinger = std::chrono::seconds(2);

  // Calls `ended` once; it destroys the bridge. `loop` outlives the bridge.
  Bridge(Loop& loop, std::unique_ptr<Channel> outer, std::unique_ptr<Channel> inner,
         std::function<void()> ended);
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  // True if the outer peer sends nothing more or its connection is lost. One system call.
  bool outer_has_ended() const { return outer_.channel->has_ended(); }

 private:
  // One of the two channels, and the bytes read from it that the other has not taken yet.
  struct Side final : ChannelOwner {
    Side(Bridge& of, std::unique_ptr<Channel> its_channel)
        : bridge(of), channel(std::move(its_channel)) {}
    void on_ready(Readiness ready) override;

    bool empty() const { return begin == end; }

    Bridge& bridge;
    std::unique_ptr<Channel> channel;
    std::array<char, kBufferBytes> buffer;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool input_ended = false;
    bool output_ended = false;
  };

  void run(Side& side, Readiness ready);
  bool pass(Side& from, Side& to);
  void update_interest();

  Side outer_;
  Side inner_;
  bool broken_ = false;
  std::function<void()> ended_;
  Timer linger_;
};

}  // namespace tubed::loop
