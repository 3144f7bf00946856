// BytePipe: two connections joined to one: the bytes of each go to the other, unchanged.
//
// An event of the loop reads once and writes once. While bytes wait for one connection, at most
// kReadBytes of them, the other is not read: a slow reader slows its sender down, and takes no
// memory. The end of input of one is the end of output of the other, after the bytes before it. A
// client that reads none of the bytes that wait for it for `stall` ends the pipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "loop/channel.h"
#include "loop/timer.h"

namespace tubed::node {

class BytePipe {
 public:
  static constexpr std::size_t kReadBytes = std::size_t{64} << 10;

  // How a pipe has ended.
  enum class End : std::uint8_t {
    complete,  // the server has ended its output, and the client was sent all of it
    broken,    // one of the connections is lost
  };
  // Called once, in a later event of the loop; may destroy the pipe.
  using Ended = std::function<void(End)>;

  // `from_server`: what was read from the server already. `loop` outlives the pipe.
  BytePipe(loop::Loop& loop, std::unique_ptr<loop::Channel> client,
           std::unique_ptr<loop::Channel> server, std::string from_server, Duration stall,
           Ended ended);
  ~BytePipe();
  BytePipe(const BytePipe&) = delete;
  BytePipe& operator=(const BytePipe&) = delete;

  // Reads no more from the client: the server, when it has answered what it was sent, ends the
  // connection.
  void end_input();
  // Gives up the client's connection; afterwards the pipe can only be destroyed. Called after its
  // end.
  std::unique_ptr<loop::Channel> release_client();

 private:
  class Side;

  bool transfer(Side& from, Side& to);
  void flush(Side& side);
  void pass_end(const Side& from, Side& to);
  void server_broke();
  void go_on();

  const Duration stall_;
  std::unique_ptr<Side> client_;
  std::unique_ptr<Side> server_;
  Ended ended_;
  bool broken_ = false;
  bool stalled_ = false;  // stall_timer_ is armed: bytes wait for the client
  loop::Timer stall_timer_;
  loop::Timer end_timer_;  // armed at the end
};

}  // namespace tubed::node
