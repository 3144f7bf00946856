// Channel: one connection in the loop, whatever carries its bytes.
//
// A channel reports when it can be read from or written to; its owner then reads and writes, with
// one call each, straight from where the bytes lie. The owner knows neither a socket nor what is
// done to the bytes on their way: another transport is another implementation of this class and
// another case in open_channel().
//
// Readiness comes from uv_poll and not from uv_stream, for two reasons. A half-close must be
// reported while nothing is read (a client that waits in reserve). And in one tick a connection
// costs one system call to read and one to write, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/loop.h"
#include "os/socket.h"

namespace tubed::loop {

// The protocol of a listener's connections.
enum class Protocol : std::uint8_t { beanstalk, http };

// Describes the listener that has accepted a connection.
struct ListenerInfo {
  Protocol protocol = Protocol::beanstalk;
  std::string inherited;  // its name if the service manager passed it on; empty: this process
                          // has opened it
};

struct Readiness {
  bool readable = false;
  bool writable = false;
  bool half_closed = false;  // the peer sends nothing more; reported once
  bool broken = false;       // the connection is lost

  void add(const Readiness& other) {
    readable |= other.readable;
    writable |= other.writable;
    half_closed |= other.half_closed;
    broken |= other.broken;
  }
};

class ChannelOwner {
 public:
  virtual void on_ready(Readiness ready) = 0;

 protected:
  ~ChannelOwner() = default;
};

class Channel {
 public:
  // Closes the connection. Bytes that were written and not yet sent are still delivered, unless
  // input is left unread: then the kernel resets the connection.
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Readiness is reported to `owner` from now on. Precondition for want(). The owner outlives the
  // channel or owns it, and may destroy it in on_ready().
  void set_owner(ChannelOwner& owner) { owner_ = &owner; }

  // Fills the buffer, or the buffers in order, with one system call. `end`: the peer sends nothing
  // more.
  virtual os::Transfer read(std::span<char> buffer) = 0;
  virtual os::Transfer read(std::span<const std::span<char>> buffers) = 0;
  // Writes the piece, or the pieces in order, with one system call; possibly not all bytes. At most
  // os::kMaxPieces pieces.
  virtual os::Transfer write(std::string_view piece) = 0;
  virtual os::Transfer write(std::span<const std::string_view> pieces) = 0;
  // True if the peer has sent bytes that are not read yet.
  virtual bool has_unread() const = 0;
  // True if the peer sends nothing more, or the connection is lost, whether that was reported or
  // not. One system call.
  virtual bool has_ended() const { return false; }
  // The address of the peer, for the log: "192.0.2.1:50312", or "unix uid 1000 pid 4711".
  virtual std::string peer() const = 0;
  // Sends the end of the stream after what was written; input can still be read.
  virtual void end_output() = 0;

  // Hands over the socket, if the bytes of the connection are those of a socket; otherwise an empty
  // socket. Afterwards the channel can only be destroyed, which does not close the connection.
  virtual os::Socket release_socket() { return {}; }

  // Reports this readiness from now on. A half-close and a broken connection are reported in either
  // case. No system call if nothing changes.
  virtual void want(bool readable, bool writable) = 0;
  // Reports nothing until the next want().
  virtual void pause() = 0;

 protected:
  Channel() = default;
  void report(Readiness ready) { owner_->on_ready(ready); }

 private:
  ChannelOwner* owner_ = nullptr;
};

// The channel of a connection that a listener has accepted. Null: the kernel refuses to watch one
// more descriptor (fs.epoll.max_user_watches), and the connection is closed. `loop` outlives it.
std::unique_ptr<Channel> open_channel(Loop& loop, os::Socket socket, const ListenerInfo& info);

}  // namespace tubed::loop
